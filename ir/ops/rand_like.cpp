// aten.rand_like: uniform random numbers, shaped like a tensor.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRandLike(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype', or else the dtype of 'self', to be floating");
  return rules::addDense(results, dtype, self.sizes);
}

} // namespace

const OpDef defs::RandLike = {
    .schema = "(Tensor self, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = inferRandLike,
    .doc = "aten.rand with the sizes of self, and its dtype unless dtype is given.",
};

} // namespace cgc::ir
