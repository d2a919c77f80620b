// WrittenBytes: gaps are not covered, slices merge, and it never covers more than a byte map does.
#include "runtime/plan/written_bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace cgc::test {
namespace {

TensorRef tensor(uint64_t offset, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                 DType dtype = DType::U8) {
  return {{BufferKind::Arena, 0, offset}, dtype, std::move(sizes), std::move(strides)};
}

bool covers(const WrittenBytes &written, const TensorRef &t, uint64_t steps = 1000) {
  return written.covers(t, steps);
}

TEST(WrittenBytes, GapsOfAStridedTensorAreNotWritten) {
  WrittenBytes written;
  written.add(tensor(0, {4, 2}, {8, 1}));
  EXPECT_TRUE(covers(written, tensor(0, {4, 2}, {8, 1})));
  EXPECT_TRUE(covers(written, tensor(16, {2}, {1})));
  EXPECT_TRUE(covers(written, tensor(9, {3}, {8})));
  EXPECT_FALSE(covers(written, tensor(0, {26}, {1})));
  EXPECT_FALSE(covers(written, tensor(2, {1}, {1})));
  EXPECT_FALSE(covers(written, tensor(0, {4, 3}, {8, 1})));
  EXPECT_FALSE(covers(written, tensor(32, {2}, {1}))); // Past the last row.
  EXPECT_FALSE(written.coversFirst(3));
}

/// A dense tensor is written slice by slice along each dimension.
TEST(WrittenBytes, SlicesAddUpAlongEachDimension) {
  const std::vector<int64_t> sizes = {3, 4, 5, 6}, strides = {120, 30, 6, 1};
  for (size_t d = 0; d < sizes.size(); ++d) {
    WrittenBytes written;
    for (int64_t i : {1, 0, 2, 5, 3, 4}) {
      if (i >= sizes[d])
        continue;
      EXPECT_FALSE(written.coversFirst(360 * 4));
      std::vector<int64_t> slice = sizes;
      slice[d] = 1;
      written.add(tensor(uint64_t(i * strides[d] * 4), slice, strides, DType::F32));
    }
    EXPECT_TRUE(written.coversFirst(360 * 4)) << "dimension " << d;
    EXPECT_FALSE(written.coversFirst(360 * 4 + 1));
  }
}

TEST(WrittenBytes, FourInterleavedPixelsAddUp) {
  WrittenBytes written;
  for (uint64_t pixel : {0, 17, 16, 1}) { // Every second row and column.
    EXPECT_FALSE(written.coversFirst(128));
    written.add(tensor(pixel, {4, 8}, {32, 2}));
  }
  EXPECT_TRUE(written.coversFirst(128));
}

TEST(WrittenBytes, ALongRepetitionTakesOneStep) {
  WrittenBytes written;
  constexpr int64_t kRows = int64_t(1) << 40;
  written.add(tensor(0, {kRows, 3}, {7, 1}));
  uint64_t steps = 1;
  EXPECT_TRUE(written.covers(tensor(0, {kRows, 3}, {7, 1}), steps));
  written.add(tensor(3, {kRows, 4}, {7, 1}));
  EXPECT_TRUE(written.coversFirst(uint64_t(kRows) * 7));
}

TEST(WrittenBytes, DimensionsThatStepAlikeAreOne) {
  WrittenBytes written;
  written.add(tensor(0, {4, 8}, {32, 4}));
  uint64_t steps = 1;
  EXPECT_TRUE(written.covers(tensor(0, {32}, {4}), steps));
}

TEST(WrittenBytes, ExaminedRunsAreCounted) {
  WrittenBytes written;
  written.add(tensor(0, {1000, 3}, {7, 1}));
  const TensorRef fewerRows = tensor(7, {500, 2}, {7, 1});
  uint64_t steps = 2000;
  EXPECT_TRUE(written.covers(fewerRows, steps));
  EXPECT_EQ(steps, 2000u - 1001); // One for the tensor, two for each row.
  steps = 500;
  EXPECT_FALSE(written.covers(fewerRows, steps));
  EXPECT_EQ(steps, 0u);
}

TEST(WrittenBytes, RemovedBytesAreNotCovered) {
  WrittenBytes written;
  uint64_t steps = 1000;
  written.add(tensor(0, {100}, {1}));
  written.remove(40, 60, steps);
  EXPECT_TRUE(covers(written, tensor(0, {40}, {1})));
  EXPECT_TRUE(covers(written, tensor(60, {40}, {1})));
  EXPECT_FALSE(covers(written, tensor(39, {2}, {1})));
  EXPECT_FALSE(covers(written, tensor(59, {1}, {1})));
  written.remove(30, 70, steps); // Over the gap.
  EXPECT_TRUE(covers(written, tensor(0, {30}, {1})));
  EXPECT_FALSE(covers(written, tensor(69, {1}, {1})));
  written.remove(0, 100, steps);
  EXPECT_FALSE(covers(written, tensor(0, {1}, {1})));
  // Of strided runs, those that may reach into the bytes.
  written.add(tensor(0, {4, 2}, {8, 1}));
  written.add(tensor(200, {4, 3}, {8, 1}));
  written.remove(26, 30, steps);
  EXPECT_TRUE(covers(written, tensor(0, {4, 2}, {8, 1})));
  written.remove(25, 26, steps);
  EXPECT_FALSE(covers(written, tensor(0, {2}, {1})));
  EXPECT_TRUE(covers(written, tensor(200, {4, 3}, {8, 1})));
  // Too many runs: nothing is known to be written.
  steps = 0;
  written.remove(0, 1, steps);
  EXPECT_FALSE(covers(written, tensor(200, {4, 3}, {8, 1})));
}

TEST(WrittenBytes, EmptyTensorsTouchNothing) {
  WrittenBytes written;
  written.add(tensor(0, {4, 0}, {8, 1}));
  EXPECT_FALSE(covers(written, tensor(0, {1}, {1})));
  EXPECT_TRUE(covers(written, tensor(0, {0, 4}, {8, 1})));
  EXPECT_TRUE(written.coversFirst(0));
}

/// Calls `visit` with the offset of each byte of the tensor.
template <class Visit> void forEachByte(const TensorRef &t, const Visit &visit) {
  int64_t elements = 1;
  for (int64_t size : t.sizes)
    elements *= size;
  for (int64_t i = 0; i < elements; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = t.sizes.size(); d-- > 0; rest /= t.sizes[d])
      at += rest % t.sizes[d] * t.strides[d];
    for (uint64_t b = 0; b < dtypeSize(t.dtype); ++b)
      visit(t.slot.offset + uint64_t(at) * dtypeSize(t.dtype) + b);
  }
}

TEST(WrittenBytes, NeverCoversMoreThanAByteMap) {
  std::mt19937 random(1);
  const auto upTo = [&](int n) { return std::uniform_int_distribution<int>(0, n)(random); };
  const auto randomTensor = [&] {
    const DType dtype = upTo(1) ? DType::U8 : DType::F16;
    std::vector<int64_t> sizes(upTo(3)), strides;
    for (int64_t &size : sizes) {
      size = upTo(4);
      strides.push_back(upTo(1) ? upTo(12) : upTo(3) * 6);
    }
    return tensor(uint64_t(upTo(15)) * dtypeSize(dtype), sizes, strides, dtype);
  };
  size_t covered = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    WrittenBytes written;
    std::vector<bool> map(1000);
    for (int i = upTo(12); i >= 0; --i) {
      const TensorRef t = randomTensor();
      written.add(t);
      forEachByte(t, [&](uint64_t byte) { map[byte] = true; });
    }
    for (int i = 0; i < 10; ++i) {
      const TensorRef t = randomTensor();
      bool all = true;
      forEachByte(t, [&](uint64_t byte) { all &= map[byte]; });
      const bool said = covers(written, t);
      ASSERT_LE(said, all) << "round " << round;
      covered += said;
      missed += all && !said;
    }
  }
  EXPECT_GT(covered, 1000u);
  EXPECT_LT(missed, covered / 10); // Only elements written by tensors of different dimensions.
}

} // namespace
} // namespace cgc::test
