// aten.dropout: the identity in inference.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferDropout(const InferArgs &args, rules::Results &results) {
  double p = args.number("p");
  if (!(p >= 0 && p <= 1))
    return rules::refuse("expected 'p' to be in [0, 1]");
  if (args.boolean("train") && p != 0)
    return rules::refuse(
        "expected 'train' to be false: cgc compiles for inference; call eval() before tracing");
  return rules::addAlias(results, args.tensor("input"));
}

} // namespace

const OpDef defs::Dropout = {
    .schema = "(Tensor input, float p, bool train) -> Tensor",
    .traits = kPure | kView,
    .infer = inferDropout,
    .batch = batch::copy,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("input", b.grad()); // The rule accepts the identity only.
      return Status::ok();
    },
    .doc = "input itself: only train=false (or p=0) is accepted, since cgc compiles for inference.",
};

} // namespace cgc::ir
