// aten.rand_like: uniform random numbers, shaped like a tensor.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  return rules::addDense(results, args.isNone("dtype") ? self.dtype : args.dtype("dtype"),
                         self.sizes);
}

} // namespace

const OpDef defs::RandLike = {
    .schema = "(Tensor self, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = infer,
    .doc = "aten.rand with the sizes of self, and its dtype unless dtype is given.",
};

} // namespace cgc::ir
