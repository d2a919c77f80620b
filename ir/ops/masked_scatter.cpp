// aten.masked_scatter: replacement of masked elements by the elements of a tensor.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMaskedScatter(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &mask = args.tensor("mask");
  if (mask.dtype != DType::Bool)
    return rules::mismatch("mask", "of dtype bool", mask);
  CGC_TRY(rules::sameDType(args, "self", {"source"}));
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::broadcast("'self' and 'mask'", self.sizes, mask.sizes));
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::MaskedScatter = {
    .schema = "(Tensor self, Tensor mask, Tensor source) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferMaskedScatter,
    .aten = "copy aten::masked_scatter",
    .gradient = [](GradientBuilder &b) -> Status {
      if (b.needs("source"))
        return rules::refuse(
            "the mask decides which elements of its source it takes; only 'self' has a gradient");
      b.set("self", gradient::unless(b, b.input("mask"), b.grad()));
      return Status::ok();
    },
    .doc = "self with the elements where mask (bool) holds replaced, in order, by the first "
           "elements of source, which must have as many; self and mask broadcast.",
};

} // namespace cgc::ir
