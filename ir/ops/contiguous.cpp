// aten.contiguous: a dense row-major tensor.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferContiguous(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.isContiguous())
    return rules::addAlias(results, self);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Contiguous = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kView | kMove,
    .infer = inferContiguous,
    .batch = batch::copy,
    .gradient = gradient::identity,
    .doc = "self itself if it is contiguous, else a dense row-major copy.",
};

} // namespace cgc::ir
