// aten.expand: broadcasts without a copy.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferExpand(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  Dims sizes = args.ints("size"), strides(sizes.size(), 0);
  int64_t added = static_cast<int64_t>(sizes.size()) - self.rank();
  auto fail = [&] {
    return rules::mismatch("self", "broadcastable to " + rules::toString(args.ints("size")), self);
  };
  if (added < 0)
    return fail();
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    int64_t d = i - added;
    if (d < 0) { // LibTorch gives a new dimension a dense stride where it is not broadcast.
      if (sizes[i] < 0)
        return fail();
      strides[i] = sizes[i] == 1 && self.rank() > 0 ? sizes[i + 1] * strides[i + 1] : 0;
    } else if (sizes[i] == -1 || sizes[i] == self.sizes[d]) {
      sizes[i] = self.sizes[d];
      strides[i] = self.strides[d];
    } else if (self.sizes[d] != 1 || sizes[i] < 0) {
      return fail();
    }
  }
  return rules::addView(results, self, sizes, strides);
}

} // namespace

const OpDef defs::Expand = {
    .schema = "(Tensor self, int[] size) -> Tensor",
    .traits = kPure | kView,
    .infer = inferExpand,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self");
          const int64_t added = call.result().rank() - self.rank();
          BatchState state = call.state(call.first());
          if (state.kind != BatchState::Shared) {
            state.dim += added;
            return state;
          }
          for (auto [dim, size] : llvm::enumerate(call.result().sizes)) {
            const int64_t from = static_cast<int64_t>(dim) - added;
            const bool repeats = from < 0 || self.sizes[from] != size;
            if (repeats && size > 0 && size % call.batch() == 0)
              return BatchState::rows(static_cast<int64_t>(dim), size / call.batch());
          }
          return state;
        },
    .gradient = gradient::identity,
    .doc = "self broadcast to size, with new dimensions in front; -1 keeps a size. Broadcast "
           "dimensions have stride 0.",
};

} // namespace cgc::ir
