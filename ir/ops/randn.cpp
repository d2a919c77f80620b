// aten.randn: normally distributed random numbers.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRandn(const InferArgs &args, rules::Results &results) {
  const DType dtype = args.isNone("dtype") ? DType::F32 : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype' to be floating");
  return rules::addDense(results, dtype, args.ints("size"));
}

} // namespace

const OpDef defs::Randn = {
    .schema = "(int[] size, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = inferRandn,
    .doc =
        "Normally distributed numbers of mean 0 and variance 1, at most 5.77 in magnitude, fresh "
        "in each run; f32 unless dtype is given. `random-numbers` computes it.",
};

} // namespace cgc::ir
