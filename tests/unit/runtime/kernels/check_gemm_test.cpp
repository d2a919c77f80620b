// Checks of GEMM kernels refuse launches that would access memory outside their tensors;
// and all kernels that write row statistics refuse wrong ones. Needs no GPU.
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "runtime/kernels/rowwise/warp_rows.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

/// Expects refusals of wrong row statistics that a launch writes.
void expectRowStatisticsRefusals(const Launch &good) {
  const auto refused = [&](const std::function<void(Tensor &)> &change) {
    expectRefused(
        good, [&](Launch &l) { change(l.writes[1]); }, "row statistics have to be dense, two f32");
  };
  refused([](Tensor &statistics) { statistics.dtype = DType::F16; });
  refused([](Tensor &statistics) { statistics.address += 4; });
  refused([](Tensor &statistics) { statistics.strides = {64, 2, 1}; });
  for (int i = 0; i < 3; ++i) {
    refused([&](Tensor &statistics) { ++statistics.sizes[i]; });
    refused([&](Tensor &statistics) { --statistics.sizes[i]; });
  }
}

constexpr int64_t kM = 300, kN = 520, kK = 520;
const Tensor kStatisticsOfRows = {kAddress, {kM, 9, 2}, {}, DType::F32};

Launch gemm(const GemmTile &tile) {
  return {.kernel = "gemm_f16_" + std::string(tile.name),
          .grid = tile.grid(kM, kN, 132),
          .block = {tile.threads(), 1, 1},
          .sharedBytes = tile.sharedBytes(3),
          .reads = {{kAddress, {kM, kK}},
                    {kAddress, {kN, kK}, {528, 1}},
                    {kAddress, {kN}},
                    {kAddress, {kM, kN}, {528, 1}}},
          .writes = {{kAddress, {kM, kN}}, kStatisticsOfRows},
          .ints = {kM, kN, kK, int64_t(Activation::Gelu), /*gates=*/1}};
}

TEST(CheckGemm, RefusesSizes) {
  for (const GemmTile &tile : gemmTiles()) {
    const Launch good = gemm(tile);
    expectTaken(good);
    const std::string why = "N and K have to be positive multiples of 8";
    for (const int64_t bad : {int64_t(0), int64_t(-8), int64_t(1) << 31, INT64_MIN})
      for (int i = 0; i < 3; ++i)
        expectRefused(good, [&](Launch &l) { l.ints[i] = bad; }, why);
    expectRefused(good, [](Launch &l) { l.ints[1] = 516; }, why);
    expectRefused(good, [](Launch &l) { l.ints[2] = 71; }, why);
    if (tile.splitK > 1)
      expectRefused(
          good, [&](Launch &l) { l.ints[2] = int64_t(tile.splitK - 1) * 64; },
          "K has to give each CTA of the split");
    for (const int64_t bad : {-1, kNumActivations})
      expectRefused(good, [&](Launch &l) { l.ints[3] = bad; }, "there is no such activation");
  }
}

TEST(CheckGemm, RefusesLaunchesOfOtherTiles) {
  for (const GemmTile &tile : gemmTiles()) {
    const Launch good = gemm(tile);
    const auto refused = [&](const std::function<void(Launch &)> &change) {
      expectRefused(good, change, "grid, block or shared memory does not match the tile");
    };
    for (int i = 0; i < 3; ++i) {
      refused([&](Launch &l) { ++l.grid[i]; });
      refused([&](Launch &l) { --l.grid[i]; });
      refused([&](Launch &l) { ++l.block[i]; });
    }
    refused([](Launch &l) { l.grid[0] = 0; });
    refused([](Launch &l) { l.block[0] -= 32; });
    refused([](Launch &l) { l.sharedBytes = 0; });
    refused([&](Launch &l) { l.sharedBytes = tile.sharedBytes(2) - 1; });
  }
}

/// A CTA has at most 99 KiB on sm_86, sm_89 and sm_120, with what the kernel declares statically:
/// the bias and the scales of a tile.
TEST(CheckGemm, MmaTilesFitEveryGpu) {
  size_t tiles = 0;
  for (const GemmTile &tile : gemmTiles()) {
    const Launch good = gemm(tile);
    EXPECT_EQ((findKernel(good.kernel)->traits & kHopper) == 0, tile.mma) << good.kernel;
    if (!tile.mma)
      continue;
    ++tiles;
    EXPECT_LE(tile.sharedBytes(tile.maxStages()), kMmaMaxSharedBytes);
    EXPECT_LE(kMmaMaxSharedBytes + tile.tileN * 2 + tile.tileM * 4, 99u << 10);
    EXPECT_EQ(tile.stagesIn(UINT32_MAX), tile.maxStages());
    for (uint32_t stages = 2; stages <= tile.maxStages(); ++stages) {
      Launch other = good;
      other.sharedBytes = tile.sharedBytes(stages);
      expectTaken(other);
    }
    expectRefused(
        good, [](Launch &l) { l.sharedBytes = kMmaMaxSharedBytes + 1; },
        "shared memory does not match the tile");
    const auto ofRows = [&](int64_t m) {
      Launch launch = good;
      launch.grid = tile.grid(m, kN, 132);
      launch.ints[0] = launch.reads[0].sizes[0] = launch.reads[3].sizes[0] =
          launch.writes[0].sizes[0] = launch.writes[1].sizes[0] = m;
      return launch;
    };
    const int64_t most = int64_t(65535) * tile.tileM;
    expectTaken(ofRows(most));
    expectRefused(ofRows(most + 1), [](Launch &) {}, "there are too many tiles");
  }
  EXPECT_EQ(tiles, 6u);
}

TEST(CheckGemm, RefusesTensors) {
  for (const GemmTile &tile : gemmTiles()) {
    const Launch good = gemm(tile);
    const auto refused = [&](const std::function<void(Launch &)> &change) {
      expectRefused(good, change, "need dense rows at multiples of 16 bytes");
    };
    const auto tensor = [](Launch &l, int i) -> Tensor & {
      constexpr int kRead[] = {0, 1, 3};
      return i < 3 ? l.reads[kRead[i]] : l.writes[0];
    };
    for (int i = 0; i < 4; ++i) {
      const int64_t columns = 520;
      refused([&](Launch &l) { tensor(l, i).address += 2; });
      refused([&](Launch &l) { tensor(l, i).dtype = DType::BF16; });
      refused([&](Launch &l) { ++tensor(l, i).sizes[0]; });
      refused([&](Launch &l) { ++tensor(l, i).sizes[1]; });
      refused([&](Launch &l) { tensor(l, i).sizes.push_back(1); });
      refused([&](Launch &l) { tensor(l, i).strides = {columns + 1, 1}; });
      refused([&](Launch &l) { tensor(l, i).strides = {columns * 2, 2}; });
      refused([&](Launch &l) { tensor(l, i).strides = {columns - 8, 1}; }); // Rows would overlap.
      if (i != 2)
        refused([&](Launch &l) { tensor(l, i).address = 0; });
    }
    const std::string bias = "bias has to be dense, with one element for each column of y";
    expectRefused(good, [](Launch &l) { l.reads[2].address += 2; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].sizes[0] -= 8; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].strides = {2}; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].dtype = DType::F32; }, bias);
    expectRowStatisticsRefusals(good);
    const std::string gate = "a gate has to be the residual of gemm";
    expectRefused(good, [](Launch &l) { l.reads[3] = {}; }, gate);
    expectRefused(good, [](Launch &l) { l.ints[4] = 2; }, gate);
    expectRefused(good, [](Launch &l) { l.ints[4] = -1; }, gate);
    Launch least = good;
    least.ints[4] = 0;
    least.reads[2] = least.reads[3] = least.writes[1] = {};
    expectTaken(least);
  }
}

/// Kernels read row statistics 16 bytes at a time. Persistent kernels need an even number of groups
/// that fits into the memory of a tile's results.
TEST(CheckGemm, RefusesRowStatisticsThatCannotBeRead) {
  int persistent = 0;
  for (const GemmTile &tile : gemmNormTiles()) {
    const auto ofK = [&](int64_t k) {
      Launch launch = gemm(tile);
      launch.kernel = "gemm_norm_f16_" + std::string(tile.name);
      launch.reads[0].sizes[1] = launch.reads[1].sizes[1] = launch.ints[2] = k;
      launch.reads[1].strides = {};
      launch.reads[3] = {kAddress, {kM, statisticsGroups(k), 2}, {}, DType::F32};
      launch.floats = {1e-5};
      launch.ints[4] = 0;
      return launch;
    };
    expectRefused(
        ofK(1024), [](Launch &l) { l.reads[3].address += 8; }, "at a multiple of 16 bytes");
    expectRefused(ofK(1024), [](Launch &l) { l.ints[4] = 1; }, "a gate has to be the residual");
    if (!tile.persistent)
      continue;
    ++persistent;
    for (const int64_t k : {72, 128, 1024, 2048})
      expectTaken(ofK(k));
    for (const int64_t k : {8, 64, 520, 2056, 2176})
      expectRefused(ofK(k), [](Launch &) {}, "an even number of groups up to 32");
  }
  EXPECT_GT(persistent, 0);
}

/// A launch of layer_norm that writes row statistics.
Launch layerNorm(const std::string &name, int64_t columns) {
  const DType dtype = name.ends_with("bf16") ? DType::BF16 : DType::F16,
              weightType = name.find("by_f32") != std::string::npos ? DType::F32 : dtype;
  return {.kernel = name,
          .grid = {uint32_t(layerNormBlocks(kM, 132)), 1, 1},
          .block = {kLayerNormThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {kM, columns}, {}, dtype},
                    {kAddress, {columns}, {}, weightType},
                    {kAddress, {columns}, {}, weightType}},
          .writes = {{kAddress, {kM, columns}, {}, dtype},
                     {kAddress, {kM, statisticsGroups(columns), 2}, {}, DType::F32}},
          .ints = {kM, columns},
          .floats = {1e-5}};
}

Launch embedding(const std::string &name, int64_t columns) {
  const DType dtype = name.ends_with("bf16") ? DType::BF16 : DType::F16;
  return {.kernel = name,
          .grid = {uint32_t(warpRowBlocks(kM)), 1, 1},
          .block = {kWarpRowThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {9, columns}, {}, dtype},
                    {kAddress, {kM}, {}, DType::I64},
                    {kAddress, {kM / 2, columns}, {}, dtype}},
          .writes = {{kAddress, {kM, columns}, {}, dtype},
                     {kAddress, {kM, statisticsGroups(columns), 2}, {}, DType::F32}},
          .ints = {}};
}

/// Expects that `good` with this change is refused, and taken without row statistics.
void expectNoRowStatistics(const Launch &good, const std::function<void(Launch &)> &change) {
  expectRefused(good, change, "row statistics are written of");
  Launch without = good;
  change(without);
  without.writes[1] = {};
  expectTaken(without);
}

/// Expects that `good` is taken, and that wrong row statistics are refused.
void expectTakesRowStatistics(const Launch &good) {
  expectTaken(good);
  expectRowStatisticsRefusals(good);
  Launch shifted = good; // Kernels write row statistics as pairs, not as vectors.
  shifted.writes[1].address += 8;
  expectTaken(shifted);
}

TEST(CheckLayerNorm, RefusesRowStatistics) {
  for (const std::string name :
       {"layer_norm_f16", "layer_norm_bf16", "layer_norm_by_f32_f16", "layer_norm_by_f32_bf16"}) {
    for (const int64_t columns : {64, 768, 1024})
      expectTakesRowStatistics(layerNorm(name, columns));
    for (const int64_t columns : {8, 72, 760, 771, 1088})
      expectNoRowStatistics(layerNorm(name, columns), [](Launch &) {});
    const Launch good = layerNorm(name, 768);
    for (int i = 0; i < 3; ++i)
      expectNoRowStatistics(good, [&](Launch &l) { l.reads[i].address += 8; });
    expectNoRowStatistics(good, [](Launch &l) { l.writes[0].address += 2; });
    Launch least = good;
    least.reads[1] = least.reads[2] = {};
    expectTaken(least);
  }
}

TEST(CheckEmbedding, RefusesRowStatistics) {
  for (const std::string name : {"embedding_f16", "embedding_bf16"}) {
    for (const int64_t columns : {64, 768, 1088})
      expectTakesRowStatistics(embedding(name, columns));
    for (const int64_t columns : {8, 72, 760, 771})
      expectNoRowStatistics(embedding(name, columns), [](Launch &) {});
    const Launch good = embedding(name, 768);
    for (const int i : {0, 2})
      expectNoRowStatistics(good, [&](Launch &l) { l.reads[i].address += 8; });
    expectNoRowStatistics(good, [](Launch &l) { l.writes[0].address += 2; });
    Launch least = good;
    least.reads[2] = {};
    expectTaken(least);
  }
}

} // namespace
} // namespace cgc::test
