// cgc.uniform: random numbers that are a function of seed, offset and position.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  for (llvm::StringRef name : {"seed", "offset"})
    if (args.tensor(name).dtype != DType::I64 || args.tensor(name).rank() != 0)
      return rules::mismatch(name, "i64[]", args.tensor(name));
  if (args.integer("stream") < 0 || args.integer("stream") > UINT32_MAX)
    return rules::mismatch("stream", "from 0 to 2^32 - 1", args.integer("stream"));
  CGC_TRY(rules::addDense(results, DType::F32, args.ints("size")));
  // The number of a block of four elements has 32 bits.
  const int64_t elements = results.back().type.numElements();
  if (elements > int64_t(4) << 32)
    return rules::mismatch("size", "of at most 2^34 elements", elements);
  return Status::ok();
}

} // namespace

const OpDef defs::Uniform = {
    .schema = "(int[] size, Tensor seed, Tensor offset, int stream) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc =
        "f32 numbers in [0, 1), multiples of 2^-24: the upper 24 bits of a word. Element i is made "
        "of word i % 4 of Philox4x32-10 with the key `seed`, in two words, and the counter i / 4, "
        "stream, in one word each, offset, in two; the lower word comes first. Calls of one graph "
        "have streams of their own; each run advances `offset`.",
};

} // namespace cgc::ir
