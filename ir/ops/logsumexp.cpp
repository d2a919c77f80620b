// aten.logsumexp: logarithm of the sum of exponentials.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferLogsumexp(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  return rules::addDense(results, isFloating(self.dtype) ? self.dtype : DType::F32,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::LogSumExp = {
    .schema = "(Tensor self, int[] dim, bool keepdim=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferLogsumexp,
    .aten = "copy aten::logsumexp",
    .batch = batch::reduction,
    .gradient = [](GradientBuilder &b) -> Status {
      CGC_ASSIGN_OR_RETURN(Value * result, gradient::withReducedDims(b, b.result()));
      CGC_ASSIGN_OR_RETURN(Value * grad, gradient::withReducedDims(b, b.grad()));
      b.set("self", b.mul(grad, b.call(OpKind::Exp, {b.sub(b.arg("self"), result)})));
      return Status::ok();
    },
    .doc = "log(sum(exp(self))) over the listed dimensions; integers and bools give f32.",
};

} // namespace cgc::ir
