// aten.detach: the same tensor outside the autograd graph.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferDetach(const InferArgs &args, rules::Results &results) {
  return rules::addAlias(results, args.tensor("self"));
}

} // namespace

const OpDef defs::Detach = {
    .schema = "(Tensor self) -> Tensor",
    .traits = kPure | kView,
    .infer = inferDetach,
    .evaluate = host::identity,
    .batch = batch::copy,
    .gradient = gradient::none,
    .doc = "self itself. No gradient passes through it.",
};

} // namespace cgc::ir
