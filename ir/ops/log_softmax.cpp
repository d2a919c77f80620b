// aten.log_softmax: logarithm of softmax.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::mismatch("self", "of a floating dtype, or 'dtype' to be one", self);
  return rules::addDense(results, dtype, self.sizes);
}

} // namespace

const OpDef defs::LogSoftmax = {
    .schema = "(Tensor self, int dim, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "copy aten::log_softmax.int",
    .doc =
        "self - log(sum(exp(self))) along dim, after conversion to dtype if it is given; floating "
        "dtypes.",
};

} // namespace cgc::ir
