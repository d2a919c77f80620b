// aten.clamp_min: lower bound.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferClampMin(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "min"}, results, /*allowBool=*/args.isTensor("min"));
}

} // namespace

const OpDef defs::ClampMin = {
    .schema = "(Tensor self, Tensor|number min) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferClampMin,
    .gradient = [](GradientBuilder &b) -> Status {
      const Arg &self = b.arg("self"), &min = b.arg("min");
      if (b.needs("self"))
        b.set("self", b.where(b.call(OpKind::Ge, {self, min}), b.grad()));
      if (b.needs("min"))
        b.set("min", b.where(b.call(OpKind::Lt, {self, min}), b.grad()));
      return Status::ok();
    },
    .doc = "max(self, min), broadcast, dtypes promoted.",
};

} // namespace cgc::ir
