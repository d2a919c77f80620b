// cgc.uniform: random numbers that are a function of seed, offset and position.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"
#include "runtime/base/philox.h"

#include <array>

namespace cgc::ir {
namespace {

Status inferCgcUniform(const InferArgs &args, rules::Results &results) {
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

constexpr int64_t kWordBits = 32, kWordMask = 0xffffffff;

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), in i64
/// arithmetic, whose products of two words wrap around without a loss of bits.
class Philox {
public:
  explicit Philox(OpBuilder &b) : b_(b) {}

  /// The four words of each of `blocks` blocks, [blocks * 4]: i64 from 0 to 2^32 - 1.
  Value *words(int64_t blocks) {
    Value *offset = b_.input("offset"), *seed = b_.input("seed");
    // Words 0 to 3 of the counter; some are equal for all blocks.
    std::array<Value *, 4> c = {b_.call(OpKind::Arange, {0, blocks}),
                                full(b_.args().integer("stream")), low(offset), high(offset)};
    Value *keys[] = {roundKeys(low(seed), kPhiloxKeySteps[0]),
                     roundKeys(high(seed), kPhiloxKeySteps[1])};
    for (int64_t round = 0; round < kPhiloxRounds; ++round) {
      Value *first = b_.mul(c[0], int64_t{kPhiloxFactors[0]}),
            *second = b_.mul(c[2], int64_t{kPhiloxFactors[1]});
      const auto mixed = [&](Value *product, Value *word, Value *key) {
        Value *both = b_.call(OpKind::BitwiseXor, {high(product), word});
        return b_.call(OpKind::BitwiseXor, {both, b_.call(OpKind::Select, {key, 0, round})});
      };
      c = {mixed(second, c[1], keys[0]), low(second), mixed(first, c[3], keys[1]), low(first)};
    }
    Arg::List columns;
    for (Value *word : c)
      columns.emplace_back(b_.expand(word, {blocks}));
    return b_.reshape(b_.call(OpKind::Stack, {std::move(columns), 1}), {blocks * 4});
  }

private:
  Value *full(int64_t number) {
    return b_.call(OpKind::Full, {Arg::ints(Dims{}), number, DType::I64});
  }
  Value *low(Value *x) { return b_.call(OpKind::BitwiseAnd, {x, kWordMask}); }
  Value *high(Value *x) { return low(b_.call(OpKind::BitwiseRightShift, {x, kWordBits})); }
  /// A word of the key in each round, [kPhiloxRounds].
  Value *roundKeys(Value *key, int64_t step) {
    Value *rounds = b_.call(OpKind::Arange, {0, int64_t{kPhiloxRounds}});
    return low(b_.add(b_.mul(rounds, step), key));
  }

  OpBuilder &b_;
};

Result<Values> defineCgcUniform(OpBuilder &b) {
  const TensorType &type = b.result()->tensor();
  const int64_t elements = type.numElements();
  if (elements == 0)
    return Values{b.zerosLike(b.result())};
  Value *words = b.call(OpKind::Slice, {Philox(b).words((elements + 3) / 4), 0, 0, elements});
  Value *upper = b.call(OpKind::BitwiseRightShift, {words, 8});
  return Values{b.reshape(b.mul(b.to(upper, DType::F32), 0x1p-24), type.sizes)};
}

} // namespace

const OpDef defs::CgcUniform = {
    .schema = "(int[] size, Tensor seed, Tensor offset, int stream) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcUniform,
    .decompose = defineCgcUniform,
    .doc =
        "f32 numbers in [0, 1), multiples of 2^-24: the upper 24 bits of a word. Element i is made "
        "of word i % 4 of Philox4x32-10 with the key `seed`, in two words, and the counter i / 4, "
        "stream, in one word each, offset, in two; the lower word comes first. Calls of one graph "
        "have streams of their own; each run advances `offset`.",
};

} // namespace cgc::ir
