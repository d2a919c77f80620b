// aten.mean: mean over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMean(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::mismatch("self", "of a floating dtype, or 'dtype' to be one", self);
  return rules::addDense(results, dtype,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::Mean = {
    .schema = "(Tensor self, int[]? dim=none, bool keepdim=false, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferMean,
    .batch = batch::reduction,
    .gradient =
        [](GradientBuilder &b) {
          Value *self = b.input("self");
          CGC_ASSIGN_OR_RETURN(Value * grad,
                               gradient::withReducedDims(b, b.to(b.grad(), self->tensor().dtype)));
          CGC_ASSIGN_OR_RETURN(const int64_t count, gradient::reducedCount(b));
          b.set("self", b.expand(b.div(grad, static_cast<double>(count)), self->tensor().sizes));
          return Status::ok();
        },
    .doc = "The mean over the listed dimensions, or over all if there are none. Floating dtypes "
           "only, after dtype.",
};

} // namespace cgc::ir
