// Checks of attention_backward_* refuse launches that would access memory outside their tensors;
// and the launch shapes. Needs no GPU.
#include "runtime/kernels/attention/attention_backward.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

constexpr int64_t kBackwardBatch = 2, kBackwardHeads = 3, kBackwardQueries = 50, kBackwardKeys = 77;

/// A launch that reads and writes heads in packed projections.
Launch attentionBackward(DType dtype, int64_t width) {
  const auto heads = [&](int64_t rows, int64_t parts) {
    const int64_t token = parts * kBackwardHeads * width;
    return Tensor{kAddress,
                  {kBackwardBatch, kBackwardHeads, rows, width},
                  {rows * token, width, token, 1},
                  dtype};
  };
  return {
      .kernel = "attention_backward_" + std::string(dtypeName(dtype)) + "_" + std::to_string(width),
      .grid = {kBackwardHeads, kBackwardBatch, 1},
      .block = {uint32_t(attentionBackwardWarps(kBackwardQueries, kBackwardKeys) * 32), 1, 1},
      .sharedBytes = uint32_t(attentionBackwardSharedBytes(kBackwardQueries, kBackwardKeys, width)),
      .reads = {heads(kBackwardQueries, 1), heads(kBackwardQueries, 3), heads(kBackwardKeys, 3),
                heads(kBackwardKeys, 3)},
      .writes = {heads(kBackwardQueries, 3), heads(kBackwardKeys, 3), heads(kBackwardKeys, 3)},
      .ints = {kBackwardBatch, kBackwardHeads, kBackwardQueries, kBackwardKeys, /*causal=*/1},
      .floats = {0.125}};
}

TEST(CheckAttentionBackward, RefusesNumbers) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t width : {64, 80}) {
      const Launch good = attentionBackward(dtype, width);
      expectTaken(good);
      const std::string numbers = "batch, heads, queries and keys have to be positive";
      for (const int64_t bad : {int64_t(0), int64_t(-1), int64_t(1) << 40, INT64_MIN})
        for (int i = 0; i < 4; ++i)
          expectRefused(good, [&](Launch &l) { l.ints[i] = bad; }, numbers);
      for (const int i : {2, 3})
        expectRefused(good, [&](Launch &l) { l.ints[i] = 4097; }, numbers);
      for (const int64_t bad : {-1, 2})
        expectRefused(good, [&](Launch &l) { l.ints[4] = bad; }, numbers);
      for (const double bad : {0.0, -1.0, double(NAN)})
        expectRefused(good, [&](Launch &l) { l.floats[0] = bad; }, "scale has to be positive");
    }
}

TEST(CheckAttentionBackward, RefusesLaunchShapes) {
  for (const int64_t width : {64, 80}) {
    const Launch good = attentionBackward(DType::BF16, width);
    const auto refused = [&](const std::function<void(Launch &)> &change) {
      expectRefused(good, change, "grid, block or shared memory does not match the problem size");
    };
    for (int i = 0; i < 3; ++i) {
      refused([&](Launch &l) { ++l.grid[i]; });
      refused([&](Launch &l) { --l.grid[i]; });
      refused([&](Launch &l) { ++l.block[i]; });
    }
    refused([](Launch &l) { l.block[0] += 32; });
    refused([](Launch &l) { ++l.sharedBytes; });
    refused([](Launch &l) { --l.sharedBytes; });
    refused([](Launch &l) { l.ints[2] += 16; }); // The rows of another problem.
    refused([](Launch &l) { l.ints[3] += 16; });
  }
}

TEST(CheckAttentionBackward, RefusesTensors) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t width : {64, 80}) {
      const Launch good = attentionBackward(dtype, width);
      const auto tensor = [](Launch &l, int i) -> Tensor & {
        return i < 4 ? l.reads[i] : l.writes[i - 4];
      };
      for (int i = 0; i < 7; ++i) {
        SCOPED_TRACE("tensor " + std::to_string(i));
        const auto refused = [&](const std::function<void(Tensor &)> &change) {
          expectRefused(
              good, [&](Launch &l) { change(tensor(l, i)); },
              "need dense columns and rows at multiples of 16 bytes");
        };
        refused([](Tensor &t) { t.address = 0; });
        refused([](Tensor &t) { t.address += 8; });
        refused([](Tensor &t) { t.dtype = DType::F32; });
        refused([&](Tensor &t) { t.dtype = dtype == DType::F16 ? DType::BF16 : DType::F16; });
        for (int d = 0; d < 4; ++d) {
          refused([&](Tensor &t) { ++t.sizes[d]; });
          refused([&](Tensor &t) { ++t.strides[d]; });
        }
        refused([](Tensor &t) { t.strides[2] += 4; });
      }
    }
}

TEST(AttentionBackwardKernel, ExistsForTwoWidthsOf16Bits) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t width : {8, 32, 48, 64, 72, 80, 96, 128})
      EXPECT_EQ(attentionBackwardKernel(dtype, width) != nullptr, width == 64 || width == 80)
          << width;
  EXPECT_EQ(attentionBackwardKernel(DType::F32, 64), nullptr);
}

/// Warps share the groups of 16 rows evenly: none has two more than another.
TEST(AttentionBackwardWarps, ShareTheRowsEvenly) {
  const std::pair<int64_t, int64_t> kWarps[] = {{1, 1},   {16, 1},  {17, 2},  {50, 4},  {77, 5},
                                                {128, 8}, {129, 5}, {197, 7}, {257, 6}, {577, 8}};
  for (const auto &[rows, warps] : kWarps) {
    EXPECT_EQ(attentionBackwardWarps(rows, rows), warps) << rows;
    EXPECT_EQ(attentionBackwardWarps(1, rows), warps) << rows;
    EXPECT_EQ(attentionBackwardWarps(rows, 1), warps) << rows;
  }
}

} // namespace
} // namespace cgc::test
