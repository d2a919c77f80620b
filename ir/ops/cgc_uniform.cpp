// cgc.uniform: random numbers that are a function of seed, offset and position.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  for (llvm::StringRef name : {"seed", "offset"})
    if (args.tensor(name).dtype != DType::I64 || args.tensor(name).rank() != 0)
      return rules::mismatch(name, "i64[]", args.tensor(name));
  if (args.integer("stream") < 0)
    return rules::mismatch("stream", "at least 0", args.integer("stream"));
  return rules::addDense(results, DType::F32, args.ints("size"));
}

} // namespace

const OpDef defs::Uniform = {
    .schema = "(int[] size, Tensor seed, Tensor offset, int stream) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc =
        "f32 numbers in [0, 1), multiples of 2^-24. Element i is made of word i % 4 of "
        "Philox4x32-10 with the key `seed` and the counter (i / 4, stream, offset), the first and "
        "the last two numbers of 32 bits each. Calls of one graph have streams of their own; each "
        "run advances `offset`.",
};

} // namespace cgc::ir
