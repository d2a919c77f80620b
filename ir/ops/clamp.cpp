// aten.clamp: lower and upper bounds.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferClamp(const InferArgs &args, rules::Results &results) {
  if (args.isNone("min") && args.isNone("max"))
    return rules::refuse("expected 'min' or 'max', got none for both");
  if (!args.isNone("min") && !args.isNone("max") && args.isTensor("min") != args.isTensor("max"))
    return rules::refuse("expected 'min' and 'max' to be both tensors or both numbers");
  return rules::pointwiseResult(args, {"self", "min", "max"}, results, /*allowBool=*/false);
}

/// A bound is inclusive: self gets the gradient where it equals the bound.
Status backwardClamp(GradientBuilder &b) {
  const Arg &self = b.arg("self"), &min = b.arg("min"), &max = b.arg("max");
  if (b.needs("self")) {
    Value *grad = b.grad();
    if (!min.isNone())
      grad = b.where(b.call(OpKind::Ge, {self, min}), grad);
    if (!max.isNone())
      grad = b.where(b.call(OpKind::Le, {self, max}), grad);
    b.set("self", grad);
  }
  if (b.needs("min")) {
    Value *grad = b.where(b.call(OpKind::Lt, {self, min}), b.grad());
    b.set("min", max.isNone() ? grad : b.where(b.call(OpKind::Lt, {min, max}), grad));
  }
  if (b.needs("max")) {
    Value *isMax = b.call(OpKind::Gt, {self, max});
    if (!min.isNone())
      isMax = b.call(OpKind::LogicalOr, {isMax, b.call(OpKind::Lt, {max, min})});
    b.set("max", b.where(isMax, b.grad()));
  }
  return Status::ok();
}

} // namespace

const OpDef defs::Clamp = {
    .schema = "(Tensor|number self, Tensor|number? min=none, Tensor|number? max=none) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferClamp,
    .evaluate = host::clamp,
    .gradient = backwardClamp,
    .doc = "min(max(self, min), max), broadcast, dtypes promoted; one bound may be none.",
};

} // namespace cgc::ir
