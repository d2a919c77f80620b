// What product refuses, and what all that write moments, layer_norm and embedding too, refuse of
// these: every launch that would leave its tensors. Needs no GPU.
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "runtime/kernels/rowwise/warp_rows.h"
#include "tests/unit/runtime/kernels/bind_launch.h"

namespace cgc::test {
namespace {

/// What is refused of the moments that a launch writes.
void expectMomentsRefusals(const Launch &good) {
  const auto refused = [&](const std::function<void(Tensor &)> &change) {
    expectRefused(
        good, [&](Launch &l) { change(l.writes[1]); }, "moments have to be dense, two f32");
  };
  refused([](Tensor &moments) { moments.dtype = DType::F16; });
  refused([](Tensor &moments) { moments.address += 4; });
  refused([](Tensor &moments) { moments.strides = {64, 2, 1}; });
  for (int i = 0; i < 3; ++i) {
    refused([&](Tensor &moments) { ++moments.sizes[i]; });
    refused([&](Tensor &moments) { --moments.sizes[i]; });
  }
}

constexpr int64_t kTokens = 300, kFeatures = 520, kDepth = 520;
const Tensor kMoments = {kAddress, {kTokens, 9, 2}, {}, DType::F32};

Launch product(const ProductTile &tile) {
  return {.kernel = "product_f16_" + std::string(tile.name),
          .grid = tile.grid(kTokens, kFeatures, 132),
          .block = {tile.threads(), 1, 1},
          .sharedBytes = tile.sharedBytes(3),
          .reads = {{kAddress, {kTokens, kDepth}},
                    {kAddress, {kFeatures, kDepth}, {528, 1}},
                    {kAddress, {kFeatures}},
                    {kAddress, {kTokens, kFeatures}, {528, 1}}},
          .writes = {{kAddress, {kTokens, kFeatures}}, kMoments},
          .ints = {kTokens, kFeatures, kDepth, int64_t(Activation::Gelu)}};
}

TEST(BindProduct, RefusesSizes) {
  for (const ProductTile &tile : productTiles()) {
    const Launch good = product(tile);
    expectTaken(good);
    const std::string why = "features and depth have to be positive multiples of 8";
    for (const int64_t bad : {int64_t(0), int64_t(-8), int64_t(1) << 31, INT64_MIN})
      for (int i = 0; i < 3; ++i)
        expectRefused(good, [&](Launch &l) { l.ints[i] = bad; }, why);
    expectRefused(good, [](Launch &l) { l.ints[1] = 516; }, why);
    expectRefused(good, [](Launch &l) { l.ints[2] = 71; }, why);
    if (tile.split > 1)
      expectRefused(
          good, [&](Launch &l) { l.ints[2] = int64_t(tile.split - 1) * 64; },
          "depth has to give each block of the split");
    for (const int64_t bad : {-1, kNumActivations})
      expectRefused(good, [&](Launch &l) { l.ints[3] = bad; }, "there is no such activation");
  }
}

TEST(BindProduct, RefusesLaunchesOfOtherTiles) {
  for (const ProductTile &tile : productTiles()) {
    const Launch good = product(tile);
    const auto refused = [&](const std::function<void(Launch &)> &change) {
      expectRefused(good, change, "the launch is not that of the tile");
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

TEST(BindProduct, RefusesTensors) {
  for (const ProductTile &tile : productTiles()) {
    const Launch good = product(tile);
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
    const std::string bias = "bias has to be dense, with one element for each feature";
    expectRefused(good, [](Launch &l) { l.reads[2].address += 2; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].sizes[0] -= 8; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].strides = {2}; }, bias);
    expectRefused(good, [](Launch &l) { l.reads[2].dtype = DType::F32; }, bias);
    expectMomentsRefusals(good);
    Launch least = good;
    least.reads[2] = least.reads[3] = least.writes[1] = {};
    expectTaken(least);
  }
}

/// Moments are read 16 bytes at a time; persistent kernels take those of pairs of groups, as many
/// as a tile's results have room for.
TEST(BindProduct, RefusesMomentsThatCannotBeRead) {
  int persistent = 0;
  for (const ProductTile &tile : productNormTiles()) {
    const auto ofDepth = [&](int64_t depth) {
      Launch launch = product(tile);
      launch.kernel = "product_norm_f16_" + std::string(tile.name);
      launch.reads[0].sizes[1] = launch.reads[1].sizes[1] = launch.ints[2] = depth;
      launch.reads[1].strides = {};
      launch.reads[3] = {kAddress, {kTokens, momentGroups(depth), 2}, {}, DType::F32};
      launch.floats = {1e-5};
      return launch;
    };
    expectRefused(
        ofDepth(1024), [](Launch &l) { l.reads[3].address += 8; }, "at a multiple of 16 bytes");
    if (!tile.persistent)
      continue;
    ++persistent;
    for (const int64_t depth : {72, 128, 1024, 2048})
      expectTaken(ofDepth(depth));
    for (const int64_t depth : {8, 64, 520, 2056, 2176})
      expectRefused(ofDepth(depth), [](Launch &) {}, "an even number of groups up to 32");
  }
  EXPECT_GT(persistent, 0);
}

/// Of so many columns, with moments.
Launch layerNorm(const std::string &name, int64_t columns) {
  const DType dtype = name.ends_with("bf16") ? DType::BF16 : DType::F16,
              weightType = name.find("by_f32") != std::string::npos ? DType::F32 : dtype;
  return {.kernel = name,
          .grid = {uint32_t(layerNormBlocks(kTokens, 132)), 1, 1},
          .block = {kLayerNormThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {kTokens, columns}, {}, dtype},
                    {kAddress, {columns}, {}, weightType},
                    {kAddress, {columns}, {}, weightType}},
          .writes = {{kAddress, {kTokens, columns}, {}, dtype},
                     {kAddress, {kTokens, momentGroups(columns), 2}, {}, DType::F32}},
          .ints = {kTokens, columns},
          .floats = {1e-5}};
}

Launch embedding(const std::string &name, int64_t columns) {
  const DType dtype = name.ends_with("bf16") ? DType::BF16 : DType::F16;
  return {.kernel = name,
          .grid = {uint32_t(warpRowBlocks(kTokens)), 1, 1},
          .block = {kWarpRowThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {9, columns}, {}, dtype},
                    {kAddress, {kTokens}, {}, DType::I64},
                    {kAddress, {kTokens / 2, columns}, {}, dtype}},
          .writes = {{kAddress, {kTokens, columns}, {}, dtype},
                     {kAddress, {kTokens, momentGroups(columns), 2}, {}, DType::F32}},
          .ints = {}};
}

/// Whether `launch`, with this change, is refused because of its moments, and only so.
void expectNoMoments(const Launch &good, const std::function<void(Launch &)> &change) {
  expectRefused(good, change, "moments are written of");
  Launch without = good;
  change(without);
  without.writes[1] = {};
  expectTaken(without);
}

/// Whether `good`, with moments, is taken, and what is refused of these.
void expectTakesMoments(const Launch &good) {
  expectTaken(good);
  expectMomentsRefusals(good);
  Launch shifted = good; // Pairs, not vectors, lie in them.
  shifted.writes[1].address += 8;
  expectTaken(shifted);
}

TEST(BindLayerNorm, RefusesMoments) {
  for (const std::string name :
       {"layer_norm_f16", "layer_norm_bf16", "layer_norm_by_f32_f16", "layer_norm_by_f32_bf16"}) {
    for (const int64_t columns : {64, 768, 1024})
      expectTakesMoments(layerNorm(name, columns));
    for (const int64_t columns : {8, 72, 760, 771, 1088})
      expectNoMoments(layerNorm(name, columns), [](Launch &) {});
    const Launch good = layerNorm(name, 768);
    for (int i = 0; i < 3; ++i)
      expectNoMoments(good, [&](Launch &l) { l.reads[i].address += 8; });
    expectNoMoments(good, [](Launch &l) { l.writes[0].address += 2; });
    Launch least = good;
    least.reads[1] = least.reads[2] = {};
    expectTaken(least);
  }
}

TEST(BindEmbedding, RefusesMoments) {
  for (const std::string name : {"embedding_f16", "embedding_bf16"}) {
    for (const int64_t columns : {64, 768, 1088})
      expectTakesMoments(embedding(name, columns));
    for (const int64_t columns : {8, 72, 760, 771})
      expectNoMoments(embedding(name, columns), [](Launch &) {});
    const Launch good = embedding(name, 768);
    for (const int i : {0, 2})
      expectNoMoments(good, [&](Launch &l) { l.reads[i].address += 8; });
    expectNoMoments(good, [](Launch &l) { l.writes[0].address += 2; });
    Launch least = good;
    least.reads[2] = {};
    expectTaken(least);
  }
}

} // namespace
} // namespace cgc::test
