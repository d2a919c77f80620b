// aten.full_like: a tensor with one value everywhere, shaped like another.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  return rules::addDense(results, args.isNone("dtype") ? self.dtype : args.dtype("dtype"),
                         self.sizes);
}

} // namespace

const OpDef defs::FullLike = {
    .schema = "(Tensor self, number fill_value, dtype? dtype=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc = "A tensor with the sizes of self, and its dtype unless dtype is given, filled with "
           "fill_value.",
};

} // namespace cgc::ir
