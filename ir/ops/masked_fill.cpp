// aten.masked_fill: replaces masked elements.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMaskedFill(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &mask = args.tensor("mask");
  if (mask.dtype != DType::Bool)
    return rules::mismatch("mask", "of dtype bool", mask);
  if (args.isTensor("value") && args.tensor("value").rank() != 0)
    return rules::mismatch("value", "0-d", args.tensor("value"));
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::broadcast("'self' and 'mask'", self.sizes, mask.sizes));
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::MaskedFill = {
    .schema = "(Tensor self, Tensor mask, Tensor|number value) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferMaskedFill,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *mask = b.input("mask");
      if (b.needs("self"))
        b.set("self", gradient::unless(b, mask, b.grad()));
      if (b.needs("value"))
        b.set("value", b.where(mask, b.grad()));
      return Status::ok();
    },
    .doc = "value (a number or a 0-d tensor) where mask (bool) holds, else self; broadcast. The "
           "dtype is that of self.",
};

} // namespace cgc::ir
