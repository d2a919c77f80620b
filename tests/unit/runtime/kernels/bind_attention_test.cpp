// What the attention kernels refuse: every launch that would leave its tensors, or that tensor maps
// cannot describe; and the launch shapes that they expect. Needs no GPU.
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_f32.h"
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/unit/runtime/kernels/bind_launch.h"

namespace cgc::test {
namespace {

constexpr int64_t kBatch = 2, kHeads = 3, kQueries = 77, kKeys = 130;

Launch attention(const std::string &name, int64_t width) {
  return {.kernel = "attention_f16_" + name,
          .grid = {2, kHeads, kBatch}, // 4 groups of 16 queries.
          .block = {256, 1, 1},
          .sharedBytes =
              attentionSharedBytes(kKeys, attentionColumns(width), /*warps=*/8, /*splits=*/2),
          .reads = {{kAddress, {kBatch, kHeads, kQueries, width}},
                    {kAddress, {kBatch, kHeads, kKeys, width}},
                    {kAddress,
                     {kBatch, kHeads, kKeys, width},
                     {3 * kHeads * width * kKeys, width, 3 * kHeads * width, 1}},
                    {kAddress + 2, {kBatch, kHeads, kQueries, kKeys}, {0, 0, kKeys, 1}}},
          .writes = {{kAddress, {kBatch, kHeads, kQueries, width}}},
          .ints = {kBatch, kHeads, kQueries, kKeys, /*causal=*/0, /*splits=*/2},
          .floats = {0.125}};
}

/// Of 64 and more columns: "attention_whole_f16_208".
Launch attentionWhole() {
  constexpr WholeShape shape{2, 2, 2};
  constexpr int64_t kWholeKeys = 197;
  return {.kernel = "attention_whole_f16_208",
          .grid = {4, 1, 1},
          .block = {256, 1, 1},
          .sharedBytes = shape.sharedBytes(kQueries, kWholeKeys),
          .reads = {{kAddress, {kBatch, kHeads, kQueries, 64}},
                    {kAddress, {kBatch, kHeads, kWholeKeys, 64}},
                    {kAddress, {kBatch, kHeads, kWholeKeys, 64}}},
          .writes = {{kAddress, {kBatch, kHeads, kQueries, 64}}},
          .ints = {kBatch, kHeads, kQueries, kWholeKeys, /*causal=*/0, shape.tiles, shape.stages},
          .floats = {0.125}};
}

Launch attentionHalves() {
  Launch launch = attentionWhole();
  launch.kernel = "attention_halves_f16";
  launch.grid[0] = uint32_t(WholeShape{1, 2, 1}.items(kBatch * kHeads, kQueries));
  launch.sharedBytes = kHalvesSharedBytes;
  launch.ints.resize(4);
  return launch;
}

Launch attentionF32(int64_t width) {
  return {.kernel = "attention_f32_" + std::to_string(attentionColumns(width)),
          .grid = {3, kHeads, kBatch},
          .block = {128, 1, 1},
          .sharedBytes = attentionF32SharedBytes(attentionColumns(width)),
          .reads = {{kAddress, {kBatch, kHeads, kQueries, width}},
                    {kAddress, {kBatch, kHeads, kKeys, width}},
                    {kAddress,
                     {kBatch, kHeads, kKeys, width},
                     {3 * kHeads * width * kKeys, width, 3 * kHeads * width, 1}},
                    {kAddress + 4, {kBatch, kHeads, kQueries, kKeys}, {0, 0, kKeys, 1}}},
          .writes = {{kAddress, {kBatch, kHeads, kQueries, width}}},
          .ints = {kBatch, kHeads, kQueries, kKeys, /*causal=*/0},
          .floats = {0.125}};
}

/// Kernels, and the widths of heads that they take.
const std::vector<std::pair<std::string, int64_t>> kAttention = {
    {"32", 8},  {"32", 32},   {"48", 40},   {"64", 64},   {"80", 72},   {"80", 80},
    {"96", 88}, {"112", 104}, {"112", 112}, {"128", 120}, {"128", 128}, {"64_hopper", 64}};

/// What all attention kernels refuse.
void expectCommonRefusals(const Launch &good) {
  SCOPED_TRACE(good.kernel);
  expectTaken(good);
  for (const int64_t bad : {int64_t(0), int64_t(-1), int64_t(1) << 40, INT64_MIN})
    for (int i = 0; i < 4; ++i)
      expectRefused(good, [&](Launch &l) { l.ints[i] = bad; }, "have to be positive");
  if (good.ints.size() > 4) // Whether it is causal.
    for (const int64_t bad : {-1, 2})
      expectRefused(good, [&](Launch &l) { l.ints[4] = bad; }, "have to be positive");
  for (const double bad : {0.0, -1.0, double(NAN)})
    expectRefused(good, [&](Launch &l) { l.floats[0] = bad; }, "scale has to be positive");
  const auto refusedLaunch = [&](const std::function<void(Launch &)> &change) {
    expectRefused(good, change, "the launch is not that of the sizes");
  };
  refusedLaunch([](Launch &l) { l.grid[0] = 100; });
  refusedLaunch([](Launch &l) { l.grid[0] = 0; });
  for (int i = 1; i < 3; ++i) {
    refusedLaunch([&](Launch &l) { ++l.grid[i]; });
    refusedLaunch([&](Launch &l) { ++l.block[i]; });
  }
  refusedLaunch([](Launch &l) { l.block[0] += 1; });
  refusedLaunch([](Launch &l) { --l.sharedBytes; });
  refusedLaunch([](Launch &l) { ++l.sharedBytes; });
  refusedLaunch([](Launch &l) { l.sharedBytes = 0; });
  const auto refusedTensor = [&](const std::function<void(Launch &)> &change) {
    expectRefused(good, change, "at multiples of 16 bytes");
  };
  const auto tensor = [](Launch &l, int i) -> Tensor & { return i < 3 ? l.reads[i] : l.writes[0]; };
  for (int i = 0; i < 4; ++i) {
    refusedTensor([&](Launch &l) { tensor(l, i).address = 0; });
    refusedTensor([&](Launch &l) { tensor(l, i).address += 2; });
    refusedTensor([&](Launch &l) { tensor(l, i).dtype = DType::BF16; });
    for (int d = 0; d < 4; ++d)
      refusedTensor([&](Launch &l) { ++tensor(l, i).sizes[d]; });
    for (int d = 0; d < 4; ++d)
      refusedTensor([&](Launch &l) {
        tensor(l, i).strides = {1 << 20, 1 << 18, 1 << 8, 1};
        tensor(l, i).strides[d] += 1;
      });
  }
}

TEST(BindAttention, Refuses) {
  for (const auto &[name, width] : kAttention)
    expectCommonRefusals(attention(name, width));
}

TEST(BindAttentionF32, Refuses) {
  for (const int64_t width : {8, 32, 48, 64, 72, 80, 88, 96, 104, 112, 128}) {
    Launch good = attentionF32(width);
    for (Tensor &read : good.reads)
      read.dtype = DType::F32;
    good.writes[0].dtype = DType::F32;
    expectCommonRefusals(good);
    const std::string mask = "at multiples of 16 bytes";
    expectRefused(good, [](Launch &l) { --l.reads[3].sizes[3]; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].strides[3] = 0; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].dtype = DType::F16; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].address += 2; }, mask);
  }
}

TEST(BindAttention, RefusesWarpsSplitsAndMasks) {
  for (const auto &[name, width] : kAttention) {
    const Launch good = attention(name, width);
    const std::string warps = "the warps of a block have to be a multiple of the splits";
    for (const int64_t bad : {0, -2, 3, 16})
      expectRefused(good, [&](Launch &l) { l.ints[5] = bad; }, warps);
    for (const uint32_t bad : {16, 96, 288, 320})
      expectRefused(good, [&](Launch &l) { l.block[0] = bad; }, warps);
    for (const int64_t other : {1, 4}) // Of which the grid and the shared memory are others.
      expectRefused(good, [&](Launch &l) { l.ints[5] = other; }, "not that of the sizes");
    const std::string mask = "at multiples of 16 bytes";
    expectRefused(good, [](Launch &l) { --l.reads[3].sizes[3]; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].strides[3] = 0; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].dtype = DType::F32; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].address += 1; }, mask);
  }
}

/// Widths for which there is another kernel, or none.
TEST(BindAttention, RefusesOtherWidths) {
  const auto refused = [](Launch good, int64_t width) {
    expectRefused(
        good,
        [&](Launch &l) {
          for (int i = 0; i < 3; ++i)
            l.reads[i].sizes[3] = l.writes[0].sizes[3] = width;
          l.reads[2].strides = {};
        },
        "a width that the kernel is for");
  };
  for (const auto &[name, width] : kAttention)
    for (const int64_t other : {width - 16, width + 16, width + 4, int64_t(0), int64_t(136)})
      if (attentionColumns(other) != attentionColumns(width))
        refused(attention(name, width), other);
  Launch f32 = attentionF32(72);
  for (auto *tensors : {&f32.reads, &f32.writes})
    for (Tensor &t : *tensors)
      t.dtype = DType::F32;
  for (const int64_t other : {64, 76, 88})
    refused(f32, other);
  // Boxes of tensor copies have 64 columns.
  expectRefused(
      attention("64_hopper", 64),
      [](Launch &l) {
        for (int i = 0; i < 3; ++i)
          l.reads[i].sizes[3] = l.writes[0].sizes[3] = 56;
        l.reads[2].strides = {};
      },
      "whole rows of 64 columns");
}

TEST(AttentionColumns, AreTheLeastThatAKernelHolds) {
  const std::pair<int64_t, int64_t> kColumns[] = {
      {8, 32},  {24, 32}, {32, 32}, {40, 48},   {56, 64},   {64, 64},   {72, 80},
      {80, 80}, {88, 96}, {96, 96}, {104, 112}, {112, 112}, {120, 128}, {128, 128},
      {0, 0},   {4, 0},   {-8, 0},  {66, 0},    {136, 0}};
  for (const auto &[width, columns] : kColumns)
    EXPECT_EQ(attentionColumns(width), columns) << width;
}

/// A block of sm_86 and sm_89 has 99 KiB: plans for sm_80 run there.
TEST(AttentionSharedBytes, AreWhatEveryGpuHas) {
  for (int64_t width = 8; width <= 128; width += 8) {
    const int64_t columns = attentionColumns(width);
    for (const int64_t keys : {1, 64, 65, 129, 193, 257, 729, 4096})
      for (const auto &[warps, splits] : {std::pair<int64_t, int64_t>{8, 1}, {4, 2}, {8, 4}})
        EXPECT_LE(attentionSharedBytes(keys, columns, warps, splits), 99u << 10) << width;
    EXPECT_GE(attentionStages(129, columns), 2) << width;
    EXPECT_LE(attentionF32SharedBytes(columns), 99u << 10) << width;
  }
  EXPECT_EQ(attentionStages(257, 64), 5);
  EXPECT_EQ(attentionStages(257, 80), 4);
  EXPECT_EQ(attentionStages(257, 128), 2);
}

/// Of dimensions that are repeated, tensor copies have no map; other copies read them.
TEST(BindAttention, TensorCopiesRefuseRepeatedRows) {
  const auto repeated = [](Launch l, int read, int dimension) {
    Tensor &tensor = l.reads[read];
    tensor.strides = {64 * 130 * 3, 64 * 130, 64, 1};
    tensor.strides[dimension] = 0;
    return l;
  };
  for (int d = 0; d < 3; ++d) {
    for (const int read : {1, 2})
      expectRefused(
          repeated(attention("64_hopper", 64), read, d), [](Launch &) {}, "are not repeated");
    for (int read = 0; read < 3; ++read) {
      expectTaken(repeated(attention("64", 64), read, d));
      expectRefused(repeated(attentionWhole(), read, d), [](Launch &) {}, "are not repeated");
      expectRefused(repeated(attentionHalves(), read, d), [](Launch &) {}, "are not repeated");
    }
  }
}

TEST(BindAttentionWhole, Refuses) {
  expectCommonRefusals(attentionWhole());
}

TEST(BindAttentionHalves, Refuses) {
  const Launch good = attentionHalves();
  expectCommonRefusals(good);
  for (const int64_t keys : {144, 289})
    expectRefused(good, [&](Launch &l) { l.ints[3] = keys; }, "the keys those of the kernel");
}

TEST(BindAttentionWhole, RefusesShapes) {
  const Launch good = attentionWhole();
  for (const int64_t keys : {128, 135, 209}) // Of other kernels, or of none.
    expectRefused(good, [&](Launch &l) { l.ints[3] = keys; }, "the keys those of the kernel");
  const std::string range = "tiles, warpgroups or stages are out of range";
  for (const int64_t bad : {int64_t(0), int64_t(-1), kWholeMaxTiles + 1, INT64_MAX})
    expectRefused(good, [&](Launch &l) { l.ints[5] = bad; }, range);
  for (const int64_t bad : {0, -1, 3})
    expectRefused(good, [&](Launch &l) { l.ints[6] = bad; }, range);
  for (const uint32_t bad : {64, 640})
    expectRefused(good, [&](Launch &l) { l.block[0] = bad; }, range);
}

TEST(BindAttentionWhole, RefusesMoreItemsThanItCanCount) {
  expectRefused(
      attentionWhole(),
      [](Launch &l) {
        l.ints[0] = l.ints[1] = 65535; // Of each two items: 2^33.
        for (auto *tensors : {&l.reads, &l.writes})
          for (Tensor &t : *tensors) {
            t.sizes[0] = t.sizes[1] = 65535;
            t.strides = {64, 64, 64, 1};
          }
      },
      "the launch is not that of the sizes");
}

/// One query more than two tiles: an item has all of them.
TEST(BindAttentionWhole, TakesASingleQuery) {
  Launch good = attentionWhole();
  for (Tensor *t : {&good.reads[0], &good.writes[0]})
    t->sizes[2] = 129;
  good.ints[2] = 129;
  good.grid[0] = uint32_t(kBatch * kHeads);
  good.sharedBytes = 2 * ((2 * 208 + 2 * 64) * 128 + 5120) + 1024;
  expectTaken(good);
  const std::string why = "the launch is not that of the sizes";
  expectRefused(good, [](Launch &l) { ++l.grid[0]; }, why);
  expectRefused(good, [](Launch &l) { l.sharedBytes -= 2 * 5120; }, why);
  // One stage, and fewer blocks than items.
  good.ints[6] = 1;
  good.sharedBytes = (2 * 208 + 2 * 64) * 128 + 5120 + 1024;
  good.grid[0] = 1;
  expectTaken(good);
}

TEST(WholeTiles, OneQueryMoreIsNone) {
  const std::pair<int64_t, int64_t> kTiles[] = {{1, 1},   {64, 1},  {65, 2},  {128, 2},
                                                {129, 2}, {130, 3}, {193, 3}, {256, 4},
                                                {257, 4}, {258, 4}, {321, 4}};
  for (const auto &[queries, tiles] : kTiles)
    EXPECT_EQ(wholeTiles(queries), tiles) << queries;
  EXPECT_TRUE((WholeShape{4, 4, 2}.hasSingle(257)));
  EXPECT_FALSE((WholeShape{4, 4, 2}.hasSingle(258)));
  EXPECT_FALSE((WholeShape{1, 1, 2}.hasSingle(65)));
  EXPECT_EQ((WholeShape{4, 4, 2}.items(3, 257)), 3);
  EXPECT_EQ((WholeShape{4, 4, 2}.items(3, 258)), 6);
  EXPECT_EQ((WholeShape{4, 4, 2}.items(3, 321)), 6);
  EXPECT_EQ((WholeShape{1, 1, 2}.items(3, 65)), 6);
  EXPECT_EQ((WholeShape{4, 4, 2}.sharedBytes(257, 257)), 216064u);
  EXPECT_EQ((WholeShape{2, 2, 1}.sharedBytes(77, 77)), 37888u);
}

TEST(WholeKeys, AreTheLeastThatAKernelHolds) {
  EXPECT_EQ(wholeKeys(1), 64);
  EXPECT_EQ(wholeKeys(64), 64);
  EXPECT_EQ(wholeKeys(65), 80);
  EXPECT_EQ(wholeKeys(128), 128);
  EXPECT_EQ(wholeKeys(129), 0); // 208 would miss too many.
  EXPECT_EQ(wholeKeys(136), 208);
  EXPECT_EQ(wholeKeys(272), 272);
  EXPECT_EQ(wholeKeys(273), 0);
}

} // namespace
} // namespace cgc::test
