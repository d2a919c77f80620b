// aten.sum: sum over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

Status inferSum(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  return rules::addDense(results, rules::accumulationDType(args),
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::Sum = {
    .schema = "(Tensor self, int[]? dim=none, bool keepdim=false, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferSum,
    .batch = batch::reduction,
    .gradient =
        [](GradientBuilder &b) {
          Value *self = b.input("self");
          CGC_ASSIGN_OR_RETURN(Value * grad,
                               gradient::withReducedDims(b, b.to(b.grad(), self->tensor().dtype)));
          b.set("self", b.expand(grad, self->tensor().sizes));
          return Status::ok();
        },
    .doc = "The sum over the listed dimensions, or over all if there are none. Integers and bools "
           "give i64 unless dtype is given.",
};

} // namespace cgc::ir
