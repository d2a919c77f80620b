// aten.rand: uniform random numbers.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRand(const InferArgs &args, rules::Results &results) {
  const DType dtype = args.isNone("dtype") ? DType::F32 : args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype' to be floating");
  return rules::addDense(results, dtype, args.ints("size"));
}

} // namespace

const OpDef defs::Rand = {
    .schema = "(int[] size, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = inferRand,
    .doc =
        "Numbers in [0, 1), fresh in each run: multiples of 2^-24, in f16 of 2^-11 and in bf16 of "
        "2^-8; f32 unless dtype is given. `random-numbers` computes it.",
};

} // namespace cgc::ir
