// cgc.uniform: one kernel on cuda; else Philox4x32-10 for all blocks at a time, in LibTorch's i64
// arithmetic.
#include "backend/kernels.h"
#include "backend/ops/lower_uniform.h"
#include "backend/ops/tensor_math.h"
#include "runtime/kernels/random/philox.h"
#include "runtime/kernels/random/uniform.h"

#include <array>

namespace cgc::backend {
namespace {

constexpr int64_t kRounds = kPhiloxRounds, kWordBits = 32, kWordMask = 0xffffffff;

Place viewOf(Place place, ir::Dims sizes, ir::Dims strides) {
  place.sizes = std::move(sizes);
  place.strides = std::move(strides);
  return place;
}

/// Index `i` of the first dimension.
Place select(Place place, int64_t i) {
  place.offset += uint64_t(i * place.strides[0]) * dtypeSize(place.dtype);
  place.sizes.erase(place.sizes.begin());
  place.strides.erase(place.strides.begin());
  return place;
}

/// Computes blocks of four words, which are i64 from 0 to 2^32 - 1.
class Philox {
public:
  Philox(int64_t blocks, BucketBuilder &builder)
      : blocks_(blocks), builder_(builder), math_(builder), mask_(math_.number(kWordMask)),
        bits_(math_.number(kWordBits)), factors_{math_.number(int64_t{kPhiloxFactors[0]}),
                                                 math_.number(int64_t{kPhiloxFactors[1]})} {}

  /// The words shifted right by `shift`, [blocks, 4].
  Place words(const Place &seed, const Place &offset, int64_t stream, int64_t shift) {
    const Place keys = roundKeys(seed);
    // Words 0 and 2, which a round multiplies, and words 1 and 3.
    Place even = temporary({2, blocks_}), odd = temporary({2, blocks_});
    builder_.callInto("aten::arange", "start_out", {int64_t{0}, blocks_, int64_t{1}},
                      select(even, 0));
    builder_.fill(select(odd, 0), stream);
    const Place offsets = viewOf(offset, {blocks_}, {0});
    low(offsets, select(even, 1));
    high(offsets, select(odd, 1));
    for (int64_t round = 0; round < kRounds; ++round) {
      // The product of word 2 goes to words 0 and 1, that of word 0 to words 2 and 3.
      const Place products = temporary({2, blocks_});
      math_.mul(select(even, 1), factors_[1], select(products, 0));
      math_.mul(select(even, 0), factors_[0], select(products, 1));
      const Place mixed = math_.bitwiseXor(high(products), odd);
      even = math_.bitwiseXor(mixed, viewOf(select(keys, round), {2, 1}, {1, 1}));
      odd = low(products);
    }
    const Place words = temporary({blocks_, 4}), by = math_.number(shift);
    Place half = viewOf(words, {2, blocks_}, {2, 4});
    math_.rightShift(even, by, half);
    half.offset += dtypeSize(DType::I64);
    math_.rightShift(odd, by, half);
    return words;
  }

private:
  Place temporary(llvm::ArrayRef<int64_t> sizes) { return builder_.temporary(DType::I64, sizes); }

  /// The low and the high 32 bits of i64.
  Place low(const Place &x, std::optional<Place> result = {}) {
    return math_.bitwiseAnd(x, mask_, std::move(result));
  }
  Place high(const Place &x, std::optional<Place> result = {}) {
    return low(math_.rightShift(x, bits_), std::move(result));
  }

  /// The two words of the key in each round, [kRounds, 2].
  Place roundKeys(const Place &seed) {
    const Place key = temporary({2}), rounds = temporary({kRounds}), sums = temporary({kRounds, 2});
    low(seed, select(key, 0));
    high(seed, select(key, 1));
    builder_.callInto("aten::arange", "start_out", {int64_t{0}, kRounds, int64_t{1}}, rounds);
    for (int64_t word = 0; word < 2; ++word) {
      const Place steps = math_.mul(rounds, math_.number(int64_t{kPhiloxKeySteps[word]}));
      math_.add(steps, select(key, word), 1,
                viewOf(select(viewOf(sums, {2, kRounds}, {1, 2}), word), {kRounds}, {2}));
    }
    return low(sums);
  }

  const int64_t blocks_;
  BucketBuilder &builder_;
  TensorMath math_;
  const Place mask_, bits_;
  const std::array<Place, 2> factors_;
};

} // namespace

void fillUniform(const Place &result, const Place &seed, const Place &offset, int64_t stream,
                 BucketBuilder &builder) {
  const Place flat = flatPlace(result, builder);
  const int64_t elements = flat.sizes[0];
  if (elements == 0 || launch({.kernel = "uniform_f32",
                               .blocks = uniformBlocks(uint64_t(elements)),
                               .threads = kUniformThreads,
                               .reads = {seed, offset},
                               .writes = {flat},
                               .ints = {stream}},
                              builder))
    return;
  // The result has the upper 24 bits of each word.
  const Place words = Philox((elements + 3) / 4, builder).words(seed, offset, stream, /*shift=*/8);
  TensorMath math(builder);
  math.mul(viewOf(words, {elements}, {1}), math.number(0x1p-24, DType::F32), flat);
}

Status lowerUniform(const ir::Node &node, BucketBuilder &builder) {
  fillUniform(builder.allocate(*node.result()), builder.place(node.arg("seed").value()),
              builder.place(node.arg("offset").value()), node.arg("stream").as<int64_t>(), builder);
  return Status::ok();
}

} // namespace cgc::backend
