// Checks of the row-wise kernels of a forward pass, such as layer_norm, rows and softmax, refuse
// launches that would access memory outside their tensors. Needs no GPU.
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "runtime/kernels/rowwise/patches.h"
#include "runtime/kernels/rowwise/row_statistics.h"
#include "runtime/kernels/rowwise/rows.h"
#include "runtime/kernels/rowwise/softmax.h"
#include "runtime/kernels/rowwise/sum_rows.h"
#include "runtime/kernels/rowwise/tokens.h"
#include "runtime/kernels/rowwise/warp_rows.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

/// Refusals of launch shapes by kernels with a warp for each of `rows`.
Launch ofWarpRows(const std::string &kernel, uint64_t rows) {
  return {.kernel = kernel,
          .grid = {uint32_t(warpRowBlocks(rows)), 1, 1},
          .block = {kWarpRowThreads, 1, 1},
          .sharedBytes = 0};
}

constexpr int64_t kNormRows = 10, kNormColumns = 16, kAddendRows = 5;

/// A launch of layer_norm, or of add_layer_norm if `name` says so.
Launch layerNorm(const std::string &name) {
  const DType dtype = name.ends_with("bf16")  ? DType::BF16
                      : name.ends_with("f16") ? DType::F16
                                              : DType::F32,
              weightType = name.find("by_f32") != std::string::npos ? DType::F32 : dtype;
  const Tensor rows = {kAddress, {2, 5, kNormColumns}, {}, dtype},
               weight = {kAddress, {kNormColumns}, {}, weightType};
  Launch launch = {.kernel = name,
                   .grid = {uint32_t(layerNormMostBlocks(kNormRows)), 1, 1},
                   .block = {kLayerNormThreads, 1, 1},
                   .sharedBytes = 0,
                   .reads = {rows, weight, weight},
                   .writes = {rows},
                   .ints = {kNormRows, kNormColumns},
                   .floats = {1e-5}};
  if (name.starts_with("add_")) {
    launch.reads.insert(launch.reads.begin() + 1,
                        {kAddress, {kAddendRows, kNormColumns}, {}, dtype});
    launch.writes.push_back(rows);
    launch.ints.push_back(kAddendRows);
  } else if (dtype != DType::F32) {
    launch.writes.push_back({}); // No row statistics requested.
  }
  return launch;
}

/// Refusals of layer_norm and add_layer_norm. Weight and bias of add_layer_norm are reads 2 and 3.
std::vector<Refusal> ofLayerNorm(bool isSum) {
  const std::string launch = "the grid has to be {1 to layerNormMostBlocks(rows), 1, 1}";
  std::vector<Refusal> refusals = {{[](Launch &l) { l.grid[0] = 0; }, launch},
                                   {[](Launch &l) { ++l.grid[0]; }, launch},
                                   {[](Launch &l) { l.grid[1] = 2; }, launch},
                                   {[](Launch &l) { l.grid[2] = 2; }, launch},
                                   {[](Launch &l) { l.block[0] = 64; }, launch},
                                   {[](Launch &l) { l.block[1] = 2; }, launch},
                                   {[](Launch &l) { l.block[2] = 2; }, launch},
                                   {[](Launch &l) { l.sharedBytes = 16; }, launch}};
  for (const int64_t bad : {int64_t(0), int64_t(-10), int64_t(1) << 31, INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, "rows and columns have to be"});
  for (const int64_t bad : {int64_t(0), int64_t(-16), INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; },
                        isSum ? "addend has to be dense" : "rows and columns have to be"});
  refuseOtherTensors(refusals, readOf(0), "x has to be dense");
  for (const size_t i : {1 + isSum, 2 + isSum})
    refuseOtherTensors(refusals, readOf(i), "weight and bias have to be dense", true);
  for (size_t i = 0; i <= isSum; ++i)
    refuseOtherTensors(refusals, writeOf(i), "the results have to be dense");
  return refusals;
}

/// Fewer CTAs take more rows each. Weight and bias may be absent.
void expectTakesLess(Launch launch) {
  for (const uint32_t blocks : {1u, launch.grid[0]}) {
    launch.grid[0] = blocks;
    for (size_t absent = 0; absent < 4; ++absent) {
      Launch less = launch;
      for (size_t i = 0; i < 2; ++i)
        if (absent >> i & 1)
          less.reads[less.reads.size() - 1 - i] = {};
      const Status status = less.check();
      EXPECT_TRUE(status.isOk()) << launch.kernel << ": " << status.message();
    }
  }
}

TEST(CheckLayerNorm, Refuses) {
  for (const std::string name : {"layer_norm_f32", "layer_norm_f16", "layer_norm_bf16",
                                 "layer_norm_by_f32_f16", "layer_norm_by_f32_bf16"}) {
    expectRefusals(layerNorm(name), ofLayerNorm(/*isSum=*/false));
    expectTakesLess(layerNorm(name));
  }
}

TEST(CheckLayerNormChain, Refuses) {
  for (const std::string name :
       {"layer_norm_chain_f32", "layer_norm_chain_f16", "layer_norm_chain_bf16",
        "layer_norm_chain_by_f32_f16", "layer_norm_chain_by_f32_bf16"}) {
    Launch chain = layerNorm(name);
    chain.reads.resize(5, chain.reads[1]);
    chain.writes.resize(1);
    chain.ints.insert(chain.ints.end(), {2, int64_t(Activation::Tanh)});
    chain.floats.push_back(1e-5);
    std::vector<Refusal> refusals = ofLayerNorm(/*isSum=*/false);
    for (const size_t i : {3, 4})
      refuseOtherTensors(refusals, readOf(i), "weight and bias have to be dense", true);
    for (const int64_t bad : {-1, 0, 3})
      refusals.push_back({[bad](Launch &l) { l.ints[2] = bad; }, "1 or 2 norms"});
    for (const size_t other : {3, 4})
      refusals.push_back({[other](Launch &l) {
                            l.ints[2] = 1;
                            l.reads[other] = {};
                          },
                          "one norm has no second weight and bias"});
    for (const size_t i : {0, 1, 2, 3, 4})
      refusals.push_back({[i](Launch &l) { l.reads[i].address += 8; }, "two norms need at most"});
    for (const int64_t bad : {-1, kNumActivations})
      refusals.push_back({[bad](Launch &l) { l.ints[3] = bad; }, "no such activation"});
    expectRefusals(chain, refusals);
    expectTakesLess(chain);
    chain.reads[3] = chain.reads[4] = {};
    chain.ints[2] = 1;
    chain.reads[0].address += 8; // One norm takes rows between vectors.
    EXPECT_TRUE(chain.check().isOk());
  }
}

TEST(CheckAddLayerNorm, Refuses) {
  for (const std::string name : {"add_layer_norm_f32", "add_layer_norm_f16", "add_layer_norm_bf16",
                                 "add_layer_norm_by_f32_f16", "add_layer_norm_by_f32_bf16"}) {
    std::vector<Refusal> refusals = ofLayerNorm(/*isSum=*/true);
    const std::string addend = "addend has to be dense, of addend_rows * columns";
    refuseOtherTensors(refusals, readOf(1), addend);
    for (const int64_t bad : {int64_t(0), int64_t(-5), kAddendRows - 1, kAddendRows + 1, INT64_MAX})
      refusals.push_back({[bad](Launch &l) { l.ints[2] = bad; }, addend});
    refusals.push_back({[](Launch &l) { l.ints[2] = l.reads[1].sizes[0] = 0; }, addend});
    expectRefusals(layerNorm(name), refusals);
    expectTakesLess(layerNorm(name));
  }
}

TEST(BindLayerNorm, HandsEpsOver) {
  for (const std::string name : {"layer_norm_f16", "add_layer_norm_by_f32_bf16"}) {
    Launch launch = layerNorm(name);
    launch.floats = {0.015625};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing accesses it.
    const std::vector<void *> addresses(4, reinterpret_cast<void *>(kAddress));
    Result<KernelParameters> parameters = launch.withView([&](const LaunchView &view) {
      return deviceKernel(*findKernel(name)).bind(view, {addresses, addresses});
    });
    ASSERT_TRUE(parameters.isOk()) << parameters.status().message();
    float words[32]; // The parameter has at least 128 bytes.
    std::memcpy(words, parameters->data(), sizeof words);
    EXPECT_THAT(words, testing::Contains(0.015625f)) << name;
  }
}

TEST(CheckEmbedding, Refuses) {
  for (const auto &[dtype, name] : {std::pair(DType::F32, "embedding_f32"),
                                    {DType::F16, "embedding_f16"},
                                    {DType::BF16, "embedding_bf16"}}) {
    Launch good = ofWarpRows(name, 10);
    good.reads = {{kAddress, {9, 16}, {}, dtype},
                  {kAddress, {2, 5}, {}, DType::I64},
                  {kAddress, {5, 16}, {}, dtype}};
    good.writes = {{kAddress, {2, 5, 16}, {}, dtype}};
    if (dtype != DType::F32)
      good.writes.push_back({});
    const std::string table = "the table has to be dense", ids = "ids have to be dense i64 or i32",
                      y = "y has to be dense, a row for each id",
                      positions = "positions have to be dense";
    std::vector<Refusal> refusals =
        withLaunch({{[](Launch &l) { l.reads[0].address = 0; }, table},
                    {[](Launch &l) { l.reads[0].dtype = DType::F64; }, table},
                    {[](Launch &l) { l.reads[0].sizes = {144}; }, table},
                    {[](Launch &l) { l.reads[0].sizes = {9, 1, 16}; }, table},
                    {[](Launch &l) { l.reads[0].sizes = {0, 16}; }, table},
                    {[](Launch &l) { l.reads[0].sizes = {9, 0}; }, table},
                    {[](Launch &l) { l.reads[0].strides = {32, 1}; }, table},
                    {[](Launch &l) { l.reads[0].sizes = {9, 15}; }, y},
                    {[](Launch &l) { l.reads[1].address = 0; }, ids},
                    {[](Launch &l) { l.reads[1].dtype = DType::F32; }, ids},
                    {[](Launch &l) { l.reads[1].dtype = DType::U8; }, ids},
                    {[](Launch &l) { l.reads[1].strides = {10, 1}; }, ids},
                    {[](Launch &l) { l.reads[1].sizes = {2, 0}; }, ids},
                    {[](Launch &l) { l.reads[1].sizes = {1 << 16, 1 << 15}; }, ids},
                    {[](Launch &l) { l.reads[1].sizes = {2, 6}; }, y},
                    {[](Launch &l) { l.reads[2].sizes = {0, 16}; }, positions},
                    {[](Launch &l) { l.reads[2].sizes = {15}; }, positions}});
    refuseOtherTensors(refusals, writeOf(0), y);
    refusals.push_back({[](Launch &l) { l.reads[2].dtype = DType::F64; }, positions});
    refusals.push_back({[](Launch &l) { ++l.reads[2].sizes[1]; }, positions});
    refusals.push_back({[](Launch &l) { l.reads[2].strides = {32, 1}; }, positions});
    expectRefusals(good, refusals);
    for (const auto &change : std::initializer_list<std::function<void(Launch &)>>{
             [](Launch &l) { l.reads[1].dtype = DType::I32; }, [](Launch &l) { l.reads[2] = {}; },
             [](Launch &l) { l.reads[2].sizes = {1, 16}; }}) {
      Launch other = good;
      change(other);
      EXPECT_TRUE(other.check().isOk()) << other.check().message();
    }
  }
}

TEST(CheckRows, Refuses) {
  Launch good = ofWarpRows("rows_f16", 3);
  good.reads = {{kAddress, {3, 5, 16}}, {kAddress, {3}, {}, DType::I64}};
  good.writes = {{kAddress, {3, 16}}};
  const std::string x = "x has to be [batches, rows, columns]", y = "y has to be dense",
                    indices = "indices have to be dense";
  expectRefusals(good, withLaunch({{[](Launch &l) { l.reads[0].address = 0; }, x},
                                   {[](Launch &l) { l.reads[0].dtype = DType::BF16; }, x},
                                   {[](Launch &l) { l.reads[0].sizes = {3, 80}; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[1] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].strides = {160, 32, 2}; }, x},
                                   {[](Launch &l) { l.reads[1].sizes = {2}; }, indices},
                                   {[](Launch &l) { l.reads[1].strides = {2}; }, indices},
                                   {[](Launch &l) { l.reads[1].dtype = DType::F32; }, indices},
                                   {[](Launch &l) { l.writes[0].sizes = {3, 15}; }, y},
                                   {[](Launch &l) { l.writes[0].sizes = {2, 16}; }, y},
                                   {[](Launch &l) { l.writes[0].strides = {32, 1}; }, y},
                                   {[](Launch &l) { l.writes[0].dtype = DType::F32; }, y}}));
}

TEST(CheckTokens, Refuses) {
  Launch good = ofWarpRows("tokens_f16", 10);
  good.reads = {{kAddress, {2, 4, 16}}, {kAddress, {16}}, {kAddress, {5, 16}}};
  good.writes = {{kAddress, {2, 5, 16}}};
  const std::string patches = "patches have to be dense", token = "the class token has to be dense",
                    positions = "positions have to be dense", y = "y has to be dense";
  expectRefusals(good, withLaunch({{[](Launch &l) { l.reads[0].sizes = {8, 16}; }, patches},
                                   {[](Launch &l) { l.reads[0].sizes[0] = 0; }, patches},
                                   {[](Launch &l) { l.reads[0].strides = {128, 32, 2}; }, patches},
                                   {[](Launch &l) { l.reads[0].dtype = DType::F32; }, patches},
                                   {[](Launch &l) { l.reads[1].sizes = {15}; }, token},
                                   {[](Launch &l) { l.reads[1].address = 0; }, token},
                                   {[](Launch &l) { l.reads[2].sizes = {4, 16}; }, positions},
                                   {[](Launch &l) { l.reads[2].strides = {0, 1}; }, positions},
                                   {[](Launch &l) { l.writes[0].sizes = {2, 4, 16}; }, y},
                                   {[](Launch &l) { l.writes[0].strides = {160, 32, 2}; }, y}}));
}

/// The kernel takes 2^31 - 1 rows and refuses 2^31; the launch shape is that of both.
TEST(CheckTokens, HasFewerThan2To31Rows) {
  constexpr int64_t kMost = INT32_MAX;
  const auto launch = [](int64_t rows) {
    Launch l = ofWarpRows("tokens_f16", uint64_t(rows));
    l.reads = {{kAddress, {1, rows - 1, 8}}, {kAddress, {8}}, {kAddress, {rows, 8}}};
    l.writes = {{kAddress, {1, rows, 8}}};
    return l;
  };
  expectTaken(launch(kMost));
  expectRefused(launch(kMost + 1), [](Launch &) {}, "y has to be dense");
}

TEST(CheckPatches, Refuses) {
  const Launch good = {.kernel = "patches_f16",
                       .grid = {2, 1, 1},
                       .block = {kPatchesThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 3, 8, 12}}},
                       .writes = {{kAddress, {12, 48}}},
                       .ints = {4, 4}};
  const std::string image = "the image has to be dense", patch = "a patch has to be of the image's",
                    y = "y has to be dense", launch = "the grid has to be";
  expectRefusals(good, {{[](Launch &l) { l.reads[0].sizes = {2, 3, 96}; }, image},
                        {[](Launch &l) { l.reads[0].sizes[1] = 0; }, image},
                        {[](Launch &l) { l.reads[0].strides = {288, 1, 36, 3}; }, image},
                        {[](Launch &l) { l.ints[0] = 0; }, patch},
                        {[](Launch &l) { l.ints[1] = -4; }, patch},
                        {[](Launch &l) { l.ints[0] = 9; }, patch},
                        {[](Launch &l) { l.ints[1] = 13; }, patch},
                        {[](Launch &l) { l.writes[0].sizes = {11, 48}; }, y},
                        {[](Launch &l) { l.writes[0].sizes = {12, 47}; }, y},
                        {[](Launch &l) { l.writes[0].sizes = {576}; }, y},
                        {[](Launch &l) { l.writes[0].dtype = DType::F32; }, y},
                        {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, launch},
                        {[](Launch &l) { l.grid[1] = 2; }, launch},
                        {[](Launch &l) { l.block[0] = 64; }, launch}});
}

/// Columns of y with padding. A patch has 32 elements, so a row of y has at least 32 columns.
TEST(CheckPatches, HasFewerThan2To31Elements) {
  const auto launch = [](int64_t patches, int64_t columns) {
    return Launch{.kernel = "patches_f16",
                  .grid = {1, 1, 1},
                  .block = {kPatchesThreads, 1, 1},
                  .sharedBytes = 0,
                  .reads = {{kAddress, {patches, 2, 4, 4}}},
                  .writes = {{kAddress, {patches, columns}}},
                  .ints = {4, 4}};
  };
  expectTaken(launch((1 << 26) - 1, 32));
  expectRefused(launch(1 << 26, 32), [](Launch &) {}, "y has to be dense");
  expectTaken(launch(1, INT32_MAX));
  expectRefused(launch(1, int64_t(INT32_MAX) + 1), [](Launch &) {}, "y has to be dense");
}

/// A number of groups beyond 32 bits is refused, not truncated.
TEST(CheckEmbedding, GroupsOfRowStatisticsAreNotCutTo32Bits) {
  constexpr int64_t kColumns = int64_t(64) << 32;
  Launch launch = ofWarpRows("embedding_f16", 1);
  launch.reads = {{kAddress, {1, kColumns}}, {kAddress, {1}, {}, DType::I64}, {}};
  launch.writes = {{kAddress, {1, kColumns}}, {kAddress, {1, 0, 2}, {}, DType::F32}};
  expectRefused(launch, [](Launch &) {}, "row statistics ");
  EXPECT_EQ(statisticsGroups(kColumns), int64_t(1) << 32);
  EXPECT_EQ(statisticsGroups(INT64_MAX), int64_t(1) << 57);
}

TEST(CheckSumRows, Refuses) {
  // Two slices, the second one not full.
  Launch good = {.kernel = "sum_rows_f16",
                 .grid = {6, 1, 1},
                 .block = {kSumRowsThreads, 1, 1},
                 .sharedBytes = 0,
                 .reads = {{kAddress, {3, 5, 72}, {432, 72, 1}}},
                 .writes = {{kAddress, {3, 72}}},
                 .ints = {},
                 .floats = {0.2}};
  const std::string x = "x has to be [batches, rows, columns]", y = "y has to be dense",
                    launch = "the grid has to be";
  expectRefusals(good, withLaunch({{[](Launch &l) { l.reads[0].address = 0; }, x},
                                   {[](Launch &l) { l.reads[0].dtype = DType::BF16; }, x},
                                   {[](Launch &l) { l.reads[0].sizes = {3, 360}; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[0] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[1] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[2] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].strides = {720, 144, 2}; }, x},
                                   {[](Launch &l) { l.writes[0].address = 0; }, y},
                                   {[](Launch &l) { l.writes[0].sizes = {3, 71}; }, y},
                                   {[](Launch &l) { l.writes[0].sizes = {2, 72}; }, y},
                                   {[](Launch &l) { l.writes[0].strides = {144, 1}; }, y},
                                   {[](Launch &l) { l.writes[0].dtype = DType::BF16; }, y},
                                   {[](Launch &l) { --l.grid[0]; }, launch},
                                   // More CTAs than a grid can have; their number modulo 2^32 would
                                   // fit.
                                   {[](Launch &l) {
                                      l.reads[0].sizes[0] = l.writes[0].sizes[0] =
                                          (int64_t(1) << 31) + 3;
                                    },
                                    launch}}));
  good.writes[0].dtype = DType::F32;
  expectTaken(good);
}

/// Whether the kernel reads and writes rows 16 bytes at a time: `check` is checkRows, checkTokens
/// or checkSumRows.
template <class F> bool usesVectors(const Launch &launch, F check) {
  const auto checked =
      launch.withView([&](const LaunchView &view) { return check(view, DType::F16); });
  EXPECT_TRUE(checked.isOk()) << launch.kernel << ": " << checked.status().message();
  return checked.isOk() && checked->vectors;
}

/// Expects vectors for `good`, and single elements with each of the changes, none of which the
/// check refuses.
template <class F>
void expectVectorsOnlyFor(const Launch &good, F check,
                          const std::vector<std::function<void(Launch &)>> &changes) {
  EXPECT_TRUE(usesVectors(good, check)) << good.kernel;
  for (size_t i = 0; i < changes.size(); ++i) {
    Launch launch = good;
    changes[i](launch);
    EXPECT_FALSE(usesVectors(launch, check)) << good.kernel << ", change " << i;
  }
}

TEST(CheckRows, MisalignedRowsAreNotReadAsVectors) {
  Launch good = ofWarpRows("rows_f16", 3);
  good.reads = {{kAddress, {3, 5, 16}, {240, 48, 1}}, {kAddress, {3}, {}, DType::I64}};
  good.writes = {{kAddress, {3, 16}}};
  expectVectorsOnlyFor(
      good, checkRows,
      {[](Launch &l) { l.reads[0].address += 8; }, [](Launch &l) { l.reads[0].strides[0] += 4; },
       [](Launch &l) { l.reads[0].strides[1] += 4; }, [](Launch &l) { l.writes[0].address += 8; },
       [](Launch &l) { l.reads[0].sizes[2] = l.writes[0].sizes[1] = 12; }});
}

TEST(CheckTokens, MisalignedRowsAreNotReadAsVectors) {
  Launch good = ofWarpRows("tokens_f16", 10);
  good.reads = {{kAddress, {2, 4, 16}}, {kAddress, {16}}, {kAddress, {5, 16}}};
  good.writes = {{kAddress, {2, 5, 16}}};
  std::vector<std::function<void(Launch &)>> changes = {
      [](Launch &l) { l.writes[0].address += 8; },
      [](Launch &l) { // Columns whose bytes are no multiple of 16.
        for (Tensor *tensor : {&l.reads[0], &l.reads[1], &l.reads[2], &l.writes[0]})
          tensor->sizes.back() = 12;
      }};
  for (size_t i = 0; i < 3; ++i)
    changes.emplace_back([i](Launch &l) { l.reads[i].address += 8; });
  expectVectorsOnlyFor(good, checkTokens, changes);
  good.reads[2] = {};
  EXPECT_TRUE(usesVectors(good, checkTokens)) << "absent positions are not misaligned";
}

/// The kernel writes single elements, so that the alignment of y is arbitrary.
TEST(CheckSumRows, MisalignedRowsAreNotReadAsVectors) {
  Launch good = {.kernel = "sum_rows_f16",
                 .grid = {6, 1, 1},
                 .block = {kSumRowsThreads, 1, 1},
                 .sharedBytes = 0,
                 .reads = {{kAddress, {3, 5, 72}, {480, 96, 1}}},
                 .writes = {{kAddress, {3, 72}}},
                 .ints = {},
                 .floats = {1}};
  expectVectorsOnlyFor(good, checkSumRows,
                       {[](Launch &l) { l.reads[0].address += 8; },
                        [](Launch &l) { l.reads[0].strides[0] += 4; },
                        [](Launch &l) { l.reads[0].strides[1] += 4; },
                        [](Launch &l) { l.reads[0].sizes[2] = l.writes[0].sizes[1] = 76; }});
  good.writes[0].address += 2;
  EXPECT_TRUE(usesVectors(good, checkSumRows));
}

TEST(CheckNormalize, Refuses) {
  Launch good = ofWarpRows("normalize_f16", 6);
  good.reads = {{kAddress, {2, 3, 16}}};
  good.writes = {{kAddress, {6, 16}}};
  good.floats = {1e-12};
  expectRefusals(
      good, withLaunch({{[](Launch &l) { l.reads[0].strides = {1, 2, 6}; }, "x has to be dense"},
                        {[](Launch &l) { l.reads[0].sizes = {}; }, "x has to be dense"},
                        {[](Launch &l) { l.reads[0].sizes = {2, 0, 16}; }, "x has to be dense"},
                        {[](Launch &l) { l.reads[0].dtype = DType::F32; }, "x has to be dense"},
                        {[](Launch &l) { l.writes[0].sizes = {6, 15}; }, "y has to be dense"},
                        {[](Launch &l) { l.writes[0].dtype = DType::F32; }, "y has to be dense"}}));
}

TEST(CheckSoftmax, Refuses) {
  for (const std::string name : {"softmax_f16", "log_softmax_f16"})
    for (const int64_t columns : {int64_t(16), kSoftmaxWarpColumns + 1}) {
      const Launch good = {.kernel = name,
                           .grid = {uint32_t(softmaxBlocks(6, columns)), 1, 1},
                           .block = {kSoftmaxThreads, 1, 1},
                           .sharedBytes = 0,
                           .reads = {{kAddress, {2, 3, columns}}},
                           .writes = {{kAddress, {6, columns}}}};
      expectRefusals(
          good,
          withLaunch({{[](Launch &l) { l.reads[0].strides = {1, 2, 6}; }, "x has to be dense"},
                      {[](Launch &l) { l.reads[0].sizes = {}; }, "x has to be dense"},
                      {[](Launch &l) { l.reads[0].sizes[0] = 0; }, "x has to be dense"},
                      {[](Launch &l) { --l.writes[0].sizes[0]; }, "y has to be dense"},
                      {[](Launch &l) { l.writes[0].dtype = DType::F32; }, "y has to be dense"}}));
    }
}

TEST(CheckArgmax, Refuses) {
  Launch good = ofWarpRows("argmax_i64", 6);
  good.reads = {{kAddress, {6, 77}, {}, DType::I64}};
  good.writes = {{kAddress, {6}, {}, DType::I64}};
  expectRefusals(
      good,
      withLaunch({{[](Launch &l) { l.reads[0].dtype = DType::I32; }, "x has to be dense"},
                  {[](Launch &l) { l.reads[0].strides = {154, 2}; }, "x has to be dense"},
                  {[](Launch &l) { l.reads[0].sizes = {6, 0}; }, "x has to be dense"},
                  {[](Launch &l) { l.reads[0].sizes = {}; }, "x has to be dense"},
                  {[](Launch &l) { l.writes[0].sizes = {5}; }, "y has to be dense i64"},
                  {[](Launch &l) { l.writes[0].dtype = DType::I32; }, "y has to be dense i64"},
                  {[](Launch &l) { l.writes[0].strides = {2}; }, "y has to be dense i64"}}));
}

} // namespace
} // namespace cgc::test
