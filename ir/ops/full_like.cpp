// aten.full_like: a tensor with one value everywhere, shaped like another.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferFullLike(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  return rules::addDense(results, args.isNone("dtype") ? self.dtype : args.dtype("dtype"),
                         self.sizes);
}

} // namespace

const OpDef defs::FullLike = {
    .schema = "(Tensor self, number fill_value, dtype? dtype=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferFullLike,
    .batch =
        [](const BatchCall &call) {
          BatchState state = call.state(call.first());
          if (state.kind != BatchState::Shared)
            state.kind = BatchState::Rows;
          return state;
        },
    .gradient = gradient::none,
    .doc = "A tensor with the sizes of self, and its dtype unless dtype is given, filled with "
           "fill_value.",
};

} // namespace cgc::ir
