// aten.repeat: repetition along dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRepeat(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const Dims repeats = args.ints("repeats");
  if (repeats.size() < self.sizes.size())
    return rules::refuse("expected 'repeats' to have at least " + llvm::Twine(self.rank()) +
                         " elements, got " + rules::toString(repeats));
  Dims sizes(repeats.size() - self.sizes.size(), 1);
  sizes.append(self.sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (repeats[i] < 0 || __builtin_mul_overflow(sizes[i], repeats[i], &sizes[i]))
      return rules::refuse("'repeats' " + rules::toString(repeats) + " is negative or too large");
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Repeat = {
    .schema = "(Tensor self, int[] repeats) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferRepeat,
    .batch =
        [](const BatchCall &call) {
          const int64_t added = call.result().rank() - call.args.tensor("self").rank();
          BatchState state = call.state(call.first());
          if (state.kind != BatchState::Shared) {
            state.dim += added; // The number of elements repeated is a multiple of inner * batch.
            return state;
          }
          for (auto [dim, times] : llvm::enumerate(call.args.ints("repeats")))
            if (const int64_t size = call.result().sizes[dim];
                size > 0 && times % call.batch() == 0)
              return BatchState::rows(static_cast<int64_t>(dim), size / call.batch());
          return state;
        },
    .gradient = [](GradientBuilder &b) -> Status {
      const Dims &sizes = b.input("self")->tensor().sizes;
      const Dims repeats = b.args().ints("repeats");
      const size_t added = repeats.size() - sizes.size();
      Dims parts, repeated; // Each dimension as its repetitions and its elements.
      for (auto [i, times] : llvm::enumerate(repeats)) {
        repeated.push_back(static_cast<int64_t>(parts.size()));
        parts.push_back(times);
        if (i >= added)
          parts.push_back(sizes[i - added]);
      }
      b.set("self", b.sum(b.reshape(b.grad(), parts), repeated, /*keepDim=*/false));
      return Status::ok();
    },
    .decompose = [](OpBuilder &b) -> Result<Values> {
      Value *self = b.input("self");
      const Dims repeats = b.args().ints("repeats");
      const size_t added = repeats.size() - self->tensor().sizes.size();
      Dims single, repeated; // Each dimension as its repetitions and its elements.
      for (auto [i, times] : llvm::enumerate(repeats)) {
        const int64_t size = i < added ? 1 : self->tensor().sizes[i - added];
        single.append({1, size});
        repeated.append({times, size});
      }
      Value *all = b.call(OpKind::Expand, {b.reshape(self, single), Arg::ints(repeated)});
      return Values{b.reshape(all, b.result()->tensor().sizes)};
    },
    .doc = "self repeated along each dimension, new ones in front included.",
};

} // namespace cgc::ir
