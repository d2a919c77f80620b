// aten.tril: lower triangle.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.rank() < 2)
    return rules::mismatch("self", "of rank 2 or more", self);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Tril = {
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc = "self [..., M, N] with zeros above this diagonal.",
};

} // namespace cgc::ir
