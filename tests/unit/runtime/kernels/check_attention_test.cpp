// Checks of attention kernels refuse launches that would access memory outside their
// tensors or that tensor maps cannot describe; and the expected launch shapes. Needs no GPU.
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_f32.h"
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/unit/runtime/kernels/check_launch.h"

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

/// A launch of attention_resident_kv_f16_208.
Launch attentionResidentKv() {
  constexpr ResidentKvShape shape{2, 2, 2};
  constexpr int64_t kResidentKvKeys = 197;
  return {
      .kernel = "attention_resident_kv_f16_208",
      .grid = {4, 1, 1},
      .block = {256, 1, 1},
      .sharedBytes = shape.sharedBytes(kQueries, kResidentKvKeys),
      .reads = {{kAddress, {kBatch, kHeads, kQueries, 64}},
                {kAddress, {kBatch, kHeads, kResidentKvKeys, 64}},
                {kAddress, {kBatch, kHeads, kResidentKvKeys, 64}}},
      .writes = {{kAddress, {kBatch, kHeads, kQueries, 64}}},
      .ints = {kBatch, kHeads, kQueries, kResidentKvKeys, /*causal=*/0, shape.tiles, shape.stages},
      .floats = {0.125}};
}

Launch attentionSplitKv() {
  Launch launch = attentionResidentKv();
  launch.kernel = "attention_split_kv_f16";
  launch.grid[0] = uint32_t(ResidentKvShape{1, 2, 1}.items(kBatch * kHeads, kQueries));
  launch.sharedBytes = kSplitKvSharedBytes;
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

/// The kernels and the widths of heads that they take.
const std::vector<std::pair<std::string, int64_t>> kAttention = {
    {"32", 8},  {"32", 32},   {"48", 40},   {"64", 64},   {"80", 72},   {"80", 80},
    {"96", 88}, {"112", 104}, {"112", 112}, {"128", 120}, {"128", 128}, {"64_hopper", 64}};

/// Expects the refusals that all attention kernels have in common.
void expectCommonRefusals(const Launch &good) {
  SCOPED_TRACE(good.kernel);
  expectTaken(good);
  for (const int64_t bad : {int64_t(0), int64_t(-1), int64_t(1) << 40, INT64_MIN})
    for (int i = 0; i < 4; ++i)
      expectRefused(good, [&](Launch &l) { l.ints[i] = bad; }, "have to be positive");
  if (good.ints.size() > 4) // ints[4] is `causal`.
    for (const int64_t bad : {-1, 2})
      expectRefused(good, [&](Launch &l) { l.ints[4] = bad; }, "have to be positive");
  for (const double bad : {0.0, -1.0, double(NAN)})
    expectRefused(good, [&](Launch &l) { l.floats[0] = bad; }, "scale has to be positive");
  const auto refusedLaunch = [&](const std::function<void(Launch &)> &change) {
    expectRefused(good, change, "grid, block or shared memory does not match the problem size");
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

TEST(CheckAttention, Refuses) {
  for (const auto &[name, width] : kAttention)
    expectCommonRefusals(attention(name, width));
}

TEST(CheckAttentionF32, Refuses) {
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

TEST(CheckAttention, RefusesWarpsSplitsAndMasks) {
  for (const auto &[name, width] : kAttention) {
    const Launch good = attention(name, width);
    const std::string warps = "the warps of a CTA have to be a multiple of the splits";
    for (const int64_t bad : {0, -2, 3, 16})
      expectRefused(good, [&](Launch &l) { l.ints[5] = bad; }, warps);
    for (const uint32_t bad : {16, 96, 288, 320})
      expectRefused(good, [&](Launch &l) { l.block[0] = bad; }, warps);
    for (const int64_t other : {1, 4}) // The grid and the shared memory would be different.
      expectRefused(good, [&](Launch &l) { l.ints[5] = other; }, "does not match the problem size");
    const std::string mask = "at multiples of 16 bytes";
    expectRefused(good, [](Launch &l) { --l.reads[3].sizes[3]; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].strides[3] = 0; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].dtype = DType::F32; }, mask);
    expectRefused(good, [](Launch &l) { l.reads[3].address += 1; }, mask);
  }
}

/// Widths of another kernel, or of none.
TEST(CheckAttention, RefusesOtherWidths) {
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
  // TMA boxes have 64 columns.
  expectRefused(
      attention("64_hopper", 64),
      [](Launch &l) {
        for (int i = 0; i < 3; ++i)
          l.reads[i].sizes[3] = l.writes[0].sizes[3] = 56;
        l.reads[2].strides = {};
      },
      "head width of exactly 64");
}

TEST(AttentionColumns, AreTheLeastThatAKernelHolds) {
  const std::pair<int64_t, int64_t> kColumns[] = {
      {8, 32},  {24, 32}, {32, 32}, {40, 48},   {56, 64},   {64, 64},   {72, 80},
      {80, 80}, {88, 96}, {96, 96}, {104, 112}, {112, 112}, {120, 128}, {128, 128},
      {0, 0},   {4, 0},   {-8, 0},  {66, 0},    {136, 0}};
  for (const auto &[width, columns] : kColumns)
    EXPECT_EQ(attentionColumns(width), columns) << width;
}

/// A CTA has at most 99 KiB on sm_86 and sm_89, where plans for sm_80 run.
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

/// Tensor maps cannot describe broadcast dimensions; kernels without TMA read them.
TEST(CheckAttention, TensorCopiesRefuseRepeatedRows) {
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
      expectRefused(repeated(attentionResidentKv(), read, d), [](Launch &) {}, "are not repeated");
      expectRefused(repeated(attentionSplitKv(), read, d), [](Launch &) {}, "are not repeated");
    }
  }
}

TEST(CheckAttentionResidentKv, Refuses) {
  expectCommonRefusals(attentionResidentKv());
}

TEST(CheckAttentionSplitKv, Refuses) {
  const Launch good = attentionSplitKv();
  expectCommonRefusals(good);
  for (const int64_t keys : {144, 289})
    expectRefused(good, [&](Launch &l) { l.ints[3] = keys; }, "the keys those of the kernel");
}

TEST(CheckAttentionResidentKv, RefusesShapes) {
  const Launch good = attentionResidentKv();
  for (const int64_t keys : {128, 135, 209}) // For other kernels, or for none.
    expectRefused(good, [&](Launch &l) { l.ints[3] = keys; }, "the keys those of the kernel");
  const std::string range = "tiles, warpgroups or stages are out of range";
  for (const int64_t bad : {int64_t(0), int64_t(-1), kResidentKvMaxTiles + 1, INT64_MAX})
    expectRefused(good, [&](Launch &l) { l.ints[5] = bad; }, range);
  for (const int64_t bad : {0, -1, 3})
    expectRefused(good, [&](Launch &l) { l.ints[6] = bad; }, range);
  for (const uint32_t bad : {64, 640})
    expectRefused(good, [&](Launch &l) { l.block[0] = bad; }, range);
}

TEST(CheckAttentionResidentKv, RefusesMoreItemsThanItCanCount) {
  expectRefused(
      attentionResidentKv(),
      [](Launch &l) {
        l.ints[0] = l.ints[1] = 65535; // 2^33 items: two of each head.
        for (auto *tensors : {&l.reads, &l.writes})
          for (Tensor &t : *tensors) {
            t.sizes[0] = t.sizes[1] = 65535;
            t.strides = {64, 64, 64, 1};
          }
      },
      "grid, block or shared memory does not match the problem size");
}

/// A single query beyond two tiles: an item has all queries of a head.
TEST(CheckAttentionResidentKv, TakesASingleQuery) {
  Launch good = attentionResidentKv();
  for (Tensor *t : {&good.reads[0], &good.writes[0]})
    t->sizes[2] = 129;
  good.ints[2] = 129;
  good.grid[0] = uint32_t(kBatch * kHeads);
  good.sharedBytes = 2 * ((2 * 208 + 2 * 64) * 128 + 5120) + 1024;
  expectTaken(good);
  const std::string why = "grid, block or shared memory does not match the problem size";
  expectRefused(good, [](Launch &l) { ++l.grid[0]; }, why);
  expectRefused(good, [](Launch &l) { l.sharedBytes -= 2 * 5120; }, why);
  // One stage, and fewer CTAs than items.
  good.ints[6] = 1;
  good.sharedBytes = (2 * 208 + 2 * 64) * 128 + 5120 + 1024;
  good.grid[0] = 1;
  expectTaken(good);
}

TEST(ResidentKvTiles, OneQueryMoreIsNone) {
  const std::pair<int64_t, int64_t> kTiles[] = {{1, 1},   {64, 1},  {65, 2},  {128, 2},
                                                {129, 2}, {130, 3}, {193, 3}, {256, 4},
                                                {257, 4}, {258, 4}, {321, 4}};
  for (const auto &[queries, tiles] : kTiles)
    EXPECT_EQ(residentKvTiles(queries), tiles) << queries;
  EXPECT_TRUE((ResidentKvShape{4, 4, 2}.hasSingle(257)));
  EXPECT_FALSE((ResidentKvShape{4, 4, 2}.hasSingle(258)));
  EXPECT_FALSE((ResidentKvShape{1, 1, 2}.hasSingle(65)));
  EXPECT_EQ((ResidentKvShape{4, 4, 2}.items(3, 257)), 3);
  EXPECT_EQ((ResidentKvShape{4, 4, 2}.items(3, 258)), 6);
  EXPECT_EQ((ResidentKvShape{4, 4, 2}.items(3, 321)), 6);
  EXPECT_EQ((ResidentKvShape{1, 1, 2}.items(3, 65)), 6);
  EXPECT_EQ((ResidentKvShape{4, 4, 2}.sharedBytes(257, 257)), 216064u);
  EXPECT_EQ((ResidentKvShape{2, 2, 1}.sharedBytes(77, 77)), 37888u);
}

TEST(ResidentKvKeys, AreTheLeastThatAKernelHolds) {
  EXPECT_EQ(residentKvKeys(1), 64);
  EXPECT_EQ(residentKvKeys(64), 64);
  EXPECT_EQ(residentKvKeys(65), 80);
  EXPECT_EQ(residentKvKeys(128), 128);
  EXPECT_EQ(residentKvKeys(129), 0); // 208 would hold too many more.
  EXPECT_EQ(residentKvKeys(136), 208);
  EXPECT_EQ(residentKvKeys(272), 272);
  EXPECT_EQ(residentKvKeys(273), 0);
}

TEST(AttentionKernels, AreTheRowsOfTheirNames) {
  const auto name = [](const Kernel *kernel) {
    return kernel ? std::string(kernel->name) : "none";
  };
  EXPECT_EQ(name(attentionKernel(DType::F16, 80, false)), "attention_f16_80");
  EXPECT_EQ(name(attentionKernel(DType::BF16, 128, false)), "attention_bf16_128");
  EXPECT_EQ(name(attentionKernel(DType::BF16, 64, true)), "attention_bf16_64_hopper");
  EXPECT_EQ(name(attentionKernel(DType::F16, 80, true)), "none");
  EXPECT_EQ(name(attentionKernel(DType::F16, 0, false)), "none");
  EXPECT_EQ(name(attentionKernel(DType::F32, 64, false)), "none");
  EXPECT_EQ(name(attentionF32Kernel(112)), "attention_f32_112");
  EXPECT_EQ(name(attentionF32Kernel(0)), "none");
  EXPECT_EQ(name(residentKvKernel(DType::F16, 77)), "attention_resident_kv_f16_80");
  EXPECT_EQ(name(residentKvKernel(DType::BF16, 272)), "attention_resident_kv_bf16_272");
  EXPECT_EQ(name(residentKvKernel(DType::F16, 129)), "none");
  EXPECT_EQ(name(residentKvKernel(DType::F32, 77)), "none");
  EXPECT_EQ(name(splitKvKernel(DType::BF16)), "attention_split_kv_bf16");
  EXPECT_EQ(name(splitKvKernel(DType::F64)), "none");
  for (const int64_t keys : kResidentKvKeys)
    for (const DType dtype : {DType::F16, DType::BF16})
      EXPECT_TRUE(residentKvKernel(dtype, keys)) << keys;
}

} // namespace
} // namespace cgc::test
