// aten.slice: a range of one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

#include <algorithm>

namespace cgc::ir {
namespace {

/// Rows stay rows if the slice is of another dimension, or of whole batches: the first [batch, C]
/// of [tokens * batch, C].
BatchState batchOfSlice(const BatchCall &call) {
  const TensorType &self = call.args.tensor("self");
  const BatchState state = call.state(call.first());
  const int64_t dim = batch::dimOf(call, self), size = call.result().sizes[dim];
  const int64_t start = call.args.isNone("start") ? 0 : call.args.integer("start");
  const int64_t begin =
      std::clamp<int64_t>(start < 0 ? start + self.sizes[dim] : start, 0, self.sizes[dim]);
  const int64_t period = state.inner * call.batch();
  if (state.kind != BatchState::Shared && state.dim == dim && size > 0 && size % period == 0 &&
      begin % period == 0 && call.args.integer("step") == 1)
    return state;
  return batch::parts(call);
}

} // namespace

const OpDef defs::Slice = {
    .schema = "(Tensor self, int dim=0, int? start=none, int? end=none, int step=1) -> Tensor",
    .traits = kPure | kView,
    .infer = rules::addSlice,
    .batch = batchOfSlice,
    .gradient =
        [](GradientBuilder &b) {
          const InferArgs args = b.args();
          CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::dimOfSelf(args));
          const int64_t size = args.tensor("self").sizes[dim];
          const int64_t start = args.isNone("start") ? 0 : args.integer("start");
          b.set("self",
                gradient::placed(b, b.grad(), dim,
                                 std::clamp<int64_t>(start < 0 ? start + size : start, 0, size),
                                 args.integer("step")));
          return Status::ok();
        },
    .doc = "Elements start, start + step, ... before end of dimension dim. Negative bounds count "
           "from the end; both are clamped.",
};

} // namespace cgc::ir
