// aten.randn_like: normally distributed random numbers, shaped like a tensor.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRandnLike(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype', or else the dtype of 'self', to be floating");
  return rules::addDense(results, dtype, self.sizes);
}

} // namespace

const OpDef defs::RandnLike = {
    .schema = "(Tensor self, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = inferRandnLike,
    .doc = "aten.randn with the sizes of self, and its dtype unless dtype is given.",
};

} // namespace cgc::ir
