// aten.hypot: length of a hypotenuse.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferHypot(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const TensorType type, rules::pointwise(args, {"self", "other"}));
  if (!isFloating(type.dtype))
    return rules::mismatch("self", "of a floating dtype after promotion", args.tensor("self"));
  return rules::addDense(results, type.dtype, type.sizes);
}

} // namespace

const OpDef defs::Hypot = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferHypot,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *share = b.div(b.grad(), b.result());
      for (llvm::StringRef name : {"self", "other"})
        if (b.needs(name))
          b.set(name, b.mul(share, b.arg(name)));
      return Status::ok();
    },
    .doc = "The square root of self^2 + other^2 without overflow, broadcast, dtypes promoted; "
           "floating.",
};

} // namespace cgc::ir
