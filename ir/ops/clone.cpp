// aten.clone: a copy.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferClone(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Clone = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferClone,
    .evaluate = host::identity,
    .batch = batch::copy,
    .gradient = gradient::identity,
    .doc = "A dense row-major copy of self.",
};

} // namespace cgc::ir
