// Checks of row-wise kernels, from layer_norm to argmax, refuse launches that would access
// memory outside their tensors. Needs no GPU.
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/rowwise/column_sums.h"
#include "runtime/kernels/rowwise/embedding_backward.h"
#include "runtime/kernels/rowwise/gather.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "runtime/kernels/rowwise/layer_norm_train.h"
#include "runtime/kernels/rowwise/patches.h"
#include "runtime/kernels/rowwise/row_statistics.h"
#include "runtime/kernels/rowwise/row_sums.h"
#include "runtime/kernels/rowwise/rows.h"
#include "runtime/kernels/rowwise/softmax.h"
#include "runtime/kernels/rowwise/squared_error.h"
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

/// Appends the refusals of every kernel with a fixed launch shape.
std::vector<Refusal> withLaunch(std::vector<Refusal> refusals) {
  const std::string why = "the grid has to be";
  for (int i = 0; i < 3; ++i) {
    refusals.push_back({[i](Launch &l) { ++l.grid[i]; }, why});
    refusals.push_back({[i](Launch &l) { l.block[i] *= 2; }, why});
  }
  refusals.push_back({[](Launch &l) { l.sharedBytes = 16; }, why});
  return refusals;
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

/// Selects a tensor of a launch that has to be dense, of one dtype and one size.
using TensorOf = std::function<Tensor &(Launch &)>;
void refuseOtherTensors(std::vector<Refusal> &refusals, const TensorOf &of, const std::string &why,
                        bool mayBeAbsent = false) {
  if (!mayBeAbsent)
    refusals.push_back({[of](Launch &l) { of(l).address = 0; }, why});
  refusals.push_back({[of](Launch &l) { of(l).dtype = DType::F64; }, why});
  refusals.push_back(
      {[of](Launch &l) { of(l).dtype = of(l).dtype == DType::F32 ? DType::F16 : DType::F32; },
       why});
  refusals.push_back({[of](Launch &l) { ++of(l).sizes.back(); }, why});
  refusals.push_back({[of](Launch &l) { --of(l).sizes.back(); }, why});
  refusals.push_back({[of](Launch &l) { of(l).sizes.front() *= 2; }, why});
  refusals.push_back({[of](Launch &l) { of(l).strides.assign(of(l).sizes.size(), 2); }, why});
}
TensorOf readOf(size_t i) {
  return [i](Launch &l) -> Tensor & { return l.reads[i]; };
}
TensorOf writeOf(size_t i) {
  return [i](Launch &l) -> Tensor & { return l.writes[i]; };
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

TEST(CheckRowSums, Refuses) {
  const std::string x = "x has to be dense, [rows, columns]",
                    y = "y has to be dense, [rows, splits]", splits = "only rows longer than 1024";
  for (const int64_t columns : {int64_t(16), kRowSumsWarpColumns, kRowSumsWarpColumns + 1}) {
    Launch good = {.kernel = "row_sums_f16",
                   .grid = {uint32_t(rowSumsBlocks(6, columns, 1)), 1, 1},
                   .block = {kRowSumsThreads, 1, 1},
                   .sharedBytes = 0,
                   .reads = {{kAddress, {2, 3, columns}}},
                   .writes = {{kAddress, {6}}},
                   .ints = {columns, 1, 1},
                   .floats = {1}};
    std::vector<Refusal> refusals =
        withLaunch({{[](Launch &l) { l.reads[0].address = 0; }, x},
                    {[](Launch &l) { l.reads[0].dtype = DType::BF16; }, x},
                    {[](Launch &l) { l.reads[0].strides.assign(3, 2); }, x},
                    {[](Launch &l) { l.reads[0].sizes[0] = 0; }, x},
                    {[](Launch &l) { l.reads[0].sizes[0] = INT32_MAX; }, x},
                    {[](Launch &l) { l.writes[0].address = 0; }, y},
                    {[](Launch &l) { l.writes[0].dtype = DType::BF16; }, y},
                    {[](Launch &l) { l.writes[0].strides = {2}; }, y},
                    {[](Launch &l) { l.writes[0].sizes = {5}; }, y},
                    {[](Launch &l) { l.writes[0].sizes = {0}; }, y}});
    for (const int64_t bad : {int64_t(0), int64_t(-1), 6 * columns + 1, INT64_MAX})
      refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, x});
    if (columns <= kRowSumsWarpColumns)
      refusals.push_back({[](Launch &l) { l.writes[0].sizes = {12}; }, splits});
    expectRefusals(good, refusals);
    good.writes[0].dtype = DType::F32;
    expectTaken(good);
  }
}

TEST(CheckRowSums, SplitsLongRows) {
  constexpr int64_t kColumns = kRowSumsWarpColumns + 1;
  const auto launch = [](int64_t splits) {
    return Launch{.kernel = "row_sums_f16",
                  .grid = {uint32_t(rowSumsBlocks(3, kColumns, splits)), 1, 1},
                  .block = {kRowSumsThreads, 1, 1},
                  .sharedBytes = 0,
                  .reads = {{kAddress, {3, kColumns}}},
                  .writes = {{kAddress, {3, splits}, {}, DType::F32}},
                  .ints = {kColumns, 0, 0},
                  .floats = {1}};
  };
  expectTaken(launch(kColumns));
  expectRefused(launch(kColumns + 1), [](Launch &) {}, "none more than columns");
  launch(7).withView([](const LaunchView &view) {
    const auto checked = checkRowSums(view, DType::F16);
    ASSERT_TRUE(checked) << checked.status().message();
    EXPECT_EQ(checked->rows, 3);
    EXPECT_EQ(checked->splits, 7);
    EXPECT_EQ(checked->part, 152); // The least multiple of 8 of which 7 have all columns.
    EXPECT_FALSE(checked->vectors);
  });
}

TEST(CheckGather, Refuses) {
  const Launch good = {.kernel = "gather",
                       .grid = {1, 1, 1},
                       .block = {kGatherThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 5, 3}}, {kAddress, {2, 7, 3}, {}, DType::I64}},
                       .writes = {{kAddress, {2, 7, 3}}}};
  const std::string x = "x has to be dense, [outer, n, inner]",
                    indices = "indices have to be dense i64 or i32, [outer, k, inner]",
                    y = "y has to be dense, an element for each index",
                    launch = "the grid has to be {up to 65536, 1, 1}";
  std::vector<Refusal> refusals = {{[](Launch &l) { l.reads[0].address = 0; }, x},
                                   {[](Launch &l) { l.reads[0].sizes = {10, 3}; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[1] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].strides = {30, 6, 2}; }, x},
                                   {[](Launch &l) { l.reads[1].address = 0; }, indices},
                                   {[](Launch &l) { l.reads[1].dtype = DType::F32; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes = {14, 3}; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[1] = 0; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[0] = 1; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[2] = 1; }, indices},
                                   {[](Launch &l) { l.reads[1].strides = {1, 2, 14}; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[1] = 1 << 30; }, "2^31 - 1"},
                                   {[](Launch &l) { l.grid[0] = 0; }, launch},
                                   {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, launch},
                                   {[](Launch &l) { l.grid[1] = 2; }, launch},
                                   {[](Launch &l) { l.block[0] = 64; }, launch},
                                   {[](Launch &l) { l.sharedBytes = 16; }, launch}};
  refuseOtherTensors(refusals, writeOf(0), y);
  expectRefusals(good, refusals);
  Launch other = good;
  other.reads[0].dtype = other.writes[0].dtype = DType::Bool;
  other.reads[1].dtype = DType::I32;
  expectTaken(other);
}

TEST(CheckScatterAdd, Refuses) {
  const Launch good = {.kernel = "scatter_add_f16",
                       .grid = {1, 1, 1},
                       .block = {kGatherThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 5, 3}},
                                 {kAddress, {2, 7, 3}, {}, DType::I64},
                                 {kAddress, {2, 7, 3}}},
                       .writes = {{kAddress, {2, 5, 3}}}};
  const std::string y = "x and y have to be dense", source = "the source has to be dense";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0].dtype = DType::F32; }, y},
      {[](Launch &l) { l.reads[0].sizes[1] = 4; }, y},
      {[](Launch &l) { l.reads[1].sizes[2] = 1; }, "indices have to be dense"},
      {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, "the grid has to be"}};
  refuseOtherTensors(refusals, writeOf(0), y);
  refuseOtherTensors(refusals, readOf(2), source);
  expectRefusals(good, refusals);
}

TEST(CheckEmbeddingBackward, Refuses) {
  // Two slices, the second one not full.
  const Launch good = {.kernel = "embedding_backward_f16",
                       .grid = {10, 2, 1},
                       .block = {kEmbeddingBackwardThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {10, 132}}, {kAddress, {2, 5}, {}, DType::I64}},
                       .writes = {{kAddress, {9, 132}}},
                       .ints = {-1}};
  const std::string y = "y has to be dense, [rows of the table, columns]",
                    ids = "ids have to be dense i64 or i32",
                    x = "x has to be dense, a row for each";
  std::vector<Refusal> refusals =
      withLaunch({{[](Launch &l) { l.writes[0].address = 0; }, y},
                  {[](Launch &l) { l.writes[0].sizes = {1188}; }, y},
                  {[](Launch &l) { l.writes[0].sizes[0] = 0; }, y},
                  {[](Launch &l) { l.writes[0].sizes[1] = 0; }, y},
                  {[](Launch &l) { l.writes[0].strides = {1, 9}; }, y},
                  {[](Launch &l) { l.reads[1].address = 0; }, ids},
                  {[](Launch &l) { l.reads[1].dtype = DType::U8; }, ids},
                  {[](Launch &l) { l.reads[1].strides = {1, 2}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {0}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {1 << 30}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {2, 6}; }, x}});
  refuseOtherTensors(refusals, readOf(0), x);
  expectRefusals(good, refusals);
  Launch other = good;
  other.reads[1].dtype = DType::I32;
  expectTaken(other);
}

/// A grid has at most 65535 CTAs in its second dimension.
TEST(CheckEmbeddingBackward, HasColumnsForTheGrid) {
  const auto launch = [](int64_t slices) {
    const int64_t columns = slices * kEmbeddingBackwardColumns;
    return Launch{.kernel = "embedding_backward_f16",
                  .grid = {1, uint32_t(slices), 1},
                  .block = {kEmbeddingBackwardThreads, 1, 1},
                  .sharedBytes = 0,
                  .reads = {{kAddress, {1, columns}}, {kAddress, {1}, {}, DType::I64}},
                  .writes = {{kAddress, {2, columns}}},
                  .ints = {-1}};
  };
  expectTaken(launch(65535));
  expectRefused(launch(65536), [](Launch &) {}, "the grid has to be");
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

constexpr std::pair<const char *, DType> kTrainDTypes[] = {
    {"f32", DType::F32}, {"f16", DType::F16}, {"bf16", DType::BF16}};

/// A launch of layer_norm_statistics or layer_norm_backward with all operands, of kNormRows rows.
Launch normStatistics(const std::string &name, DType dtype, int64_t columns) {
  const Tensor rows = {kAddress, {kNormRows, columns}, {}, DType::F32},
               narrow = {kAddress, {kNormRows, columns}, {}, dtype},
               row = {kAddress, {columns}, {}, DType::F32},
               statistics = {kAddress, {kNormRows, 1}, {}, DType::F32};
  return {.kernel = "layer_norm_statistics_" + name + (columns > 1024 ? "_2048" : "_1024"),
          .grid = {uint32_t(normStatisticsBlocks(kNormRows)), 1, 1},
          .block = {kNormStatisticsThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {rows, row, row, narrow},
          .writes = {narrow, statistics, statistics, rows},
          .ints = {kNormRows, columns},
          .floats = {1e-5}};
}
Launch normBackward(const std::string &name, DType dtype, int64_t columns) {
  const Tensor rows = {kAddress, {kNormRows, columns}, {}, DType::F32},
               narrow = {kAddress, {kNormRows, columns}, {}, dtype},
               row = {kAddress, {columns}, {}, DType::F32},
               statistics = {kAddress, {kNormRows, 1}, {}, DType::F32};
  const uint64_t blocks = normBackwardMostBlocks(kNormRows, columns);
  return {.kernel = "layer_norm_backward_" + name + (columns > 1024 ? "_2048" : "_1024"),
          .grid = {uint32_t(blocks), 1, 1},
          .block = {normBackwardThreads(columns), 1, 1},
          .sharedBytes = normBackwardSharedBytes(columns),
          .reads = {narrow, rows, statistics, statistics, row, rows},
          .writes = {rows,
                     dtype == DType::F32 ? Tensor() : narrow,
                     {kAddress, {int64_t(blocks), 2, columns}, {}, DType::F32}},
          .ints = {kNormRows, columns}};
}

/// Appends refusals of rows and columns that the kernel for `columns` does not take.
void refuseOtherRows(std::vector<Refusal> &refusals, int64_t columns) {
  const std::string why = "rows have to be positive, columns a multiple of 4 that the kernel is";
  for (const int64_t bad : {int64_t(0), int64_t(-10), int64_t(1) << 31, INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, why});
  for (const int64_t bad : {int64_t(0), int64_t(-4), int64_t(18),
                            int64_t(columns > 1024 ? 1024 : 1028), int64_t(2052), INT64_MAX - 3})
    refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; }, why});
}

TEST(CheckNormStatistics, Refuses) {
  for (const auto &[name, dtype] : kTrainDTypes)
    for (const int64_t columns : {4, 1024, 1028, 2048}) {
      const Launch good = normStatistics(name, dtype, columns);
      const std::string rows = "x and y have to be dense", addend = "the addend has to be dense",
                        parameters = "weight and bias have to be dense",
                        statistics = "mean and rstd have to be dense";
      std::vector<Refusal> refusals = withLaunch({});
      refuseOtherRows(refusals, columns);
      refuseOtherTensors(refusals, readOf(0), rows);
      refuseOtherTensors(refusals, writeOf(0), rows);
      for (const size_t i : {1, 2}) {
        refuseOtherTensors(refusals, readOf(i), parameters, true);
        refuseOtherTensors(refusals, writeOf(i), statistics);
      }
      refuseOtherTensors(refusals, writeOf(3), addend);
      const DType other = dtype == DType::BF16 ? DType::F16 : DType::BF16;
      refusals.insert(refusals.end(), {{[](Launch &l) { l.reads[0].address += 8; }, rows},
                                       {[](Launch &l) { l.writes[0].address += 2; }, rows},
                                       {[](Launch &l) { l.reads[1].address += 8; }, parameters},
                                       {[](Launch &l) { l.reads[3].address += 2; }, addend},
                                       {[](Launch &l) { l.writes[3].address += 8; }, addend},
                                       {[](Launch &l) { l.reads[3].address = 0; }, addend},
                                       {[other](Launch &l) { l.reads[3].dtype = other; }, addend},
                                       {[](Launch &l) { --l.reads[3].sizes[1]; }, addend},
                                       {[](Launch &l) { l.reads[3].sizes[0] = 1; }, addend},
                                       {[](Launch &l) { l.reads[3].strides = {2, 2}; }, addend}});
      expectRefusals(good, refusals);
      for (const auto &change : std::initializer_list<std::function<void(Launch &)>>{
               [](Launch &l) { l.reads[1] = l.reads[2] = {}; },
               [](Launch &l) { l.reads[3].dtype = DType::F32; },
               [](Launch &l) { l.reads[3] = l.writes[3] = {}; }}) {
        Launch less = good;
        change(less);
        expectTaken(less);
      }
    }
}

TEST(CheckNormBackward, Refuses) {
  for (const auto &[name, dtype] : kTrainDTypes)
    for (const int64_t columns : {4, 1024, 1028, 2048}) {
      const Launch good = normBackward(name, dtype, columns);
      const std::string rows = "grad, x and residual have to be dense",
                        statistics = "mean and rstd have to be dense",
                        weight = "weight has to be dense", result = "grad_x has to be dense";
      std::vector<Refusal> refusals = withLaunch({});
      refusals.push_back({[](Launch &l) { l.grid[0] = 0; }, "the grid has to be"});
      refusals.push_back({[](Launch &l) { l.sharedBytes *= 2; }, "the grid has to be"});
      refuseOtherRows(refusals, columns);
      for (const size_t i : {0, 1})
        refuseOtherTensors(refusals, readOf(i), rows);
      for (const size_t i : {2, 3})
        refuseOtherTensors(refusals, readOf(i), statistics);
      refuseOtherTensors(refusals, readOf(4), weight, true);
      refuseOtherTensors(refusals, readOf(5), rows, true);
      refuseOtherTensors(refusals, writeOf(0), result);
      refuseOtherTensors(refusals, writeOf(2), result);
      if (dtype != DType::F32)
        refuseOtherTensors(refusals, writeOf(1), result, true);
      const Tensor copy = {kAddress, {kNormRows, columns}, {}, DType::F32},
                   other = {kAddress,
                            {kNormRows, columns},
                            {},
                            dtype == DType::BF16 ? DType::F16 : DType::BF16};
      refusals.insert(refusals.end(), {{[](Launch &l) { l.reads[0].address += 2; }, rows},
                                       {[](Launch &l) { l.reads[1].address += 8; }, rows},
                                       {[](Launch &l) { l.reads[4].address += 8; }, weight},
                                       {[](Launch &l) { l.reads[5].address += 8; }, rows},
                                       {[](Launch &l) { l.writes[0].address += 8; }, result},
                                       {[](Launch &l) { l.writes[2].address += 8; }, result},
                                       {[copy](Launch &l) { l.writes[1] = copy; }, result},
                                       {[other](Launch &l) { l.writes[1] = other; }, result}});
      expectRefusals(good, refusals);
      for (const auto &change : std::initializer_list<std::function<void(Launch &)>>{
               [](Launch &l) { l.reads[4] = {}; }, [](Launch &l) { l.reads[5] = {}; },
               [](Launch &l) { l.writes[1] = {}; },
               [](Launch &l) { l.grid[0] = 1, l.writes[2].sizes[0] = 1; }}) {
        Launch less = good;
        change(less);
        expectTaken(less);
      }
    }
}

/// Expects the kernel's parameters to have the addresses of all tensors of the launch.
void expectAddressesHandedOver(const Launch &launch) {
  std::vector<void *> addresses;
  for (size_t i = 0; i < launch.reads.size() + launch.writes.size(); ++i)
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing accesses it.
    addresses.push_back(reinterpret_cast<void *>((i + 1) * kAddress));
  const std::vector<void *> reads(addresses.begin(), addresses.begin() + launch.reads.size()),
      writes(addresses.begin() + launch.reads.size(), addresses.end());
  Result<KernelParameters> parameters = launch.withView([&](const LaunchView &view) {
    return deviceKernel(*findKernel(launch.kernel)).bind(view, {reads, writes});
  });
  ASSERT_TRUE(parameters.isOk()) << parameters.status().message();
  void *words[16]; // The parameter has at least 128 bytes.
  std::memcpy(words, parameters->data(), sizeof words);
  for (size_t i = 0; i < addresses.size(); ++i)
    EXPECT_THAT(words, testing::Contains(addresses[i])) << launch.kernel << ", tensor " << i;
}

TEST(BindNormTrain, HandsAllTensorsOver) {
  for (const DType addend : {DType::BF16, DType::F32}) {
    Launch launch = normStatistics("bf16", DType::BF16, 64);
    launch.reads[3].dtype = addend;
    expectAddressesHandedOver(launch);
  }
  expectAddressesHandedOver(normStatistics("f32", DType::F32, 64));
  expectAddressesHandedOver(normBackward("bf16", DType::BF16, 64));
}

TEST(CheckNormParameters, Refuses) {
  const Tensor row = {kAddress, {48}, {}, DType::F32};
  const Launch good = {.kernel = "layer_norm_parameters_f32",
                       .grid = {2, 1, 1},
                       .block = {kNormParameterThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {3, 2, 48}, {}, DType::F32}},
                       .writes = {row, row},
                       .ints = {3, 48}};
  const std::string numbers = "partial sums and columns have to be positive";
  std::vector<Refusal> refusals = withLaunch({});
  for (const int64_t bad : {int64_t(0), int64_t(-3), int64_t(1) << 30, INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, numbers});
  for (const int64_t bad : {int64_t(0), int64_t(-48), int64_t(50), int64_t(2052), INT64_MAX - 3})
    refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; }, numbers});
  refuseOtherTensors(refusals, readOf(0), "the partial sums have to be dense");
  for (const size_t i : {0, 1})
    refuseOtherTensors(refusals, writeOf(i), "grad_weight and grad_bias have to be dense", true);
  expectRefusals(good, refusals);
  Launch less = good;
  less.writes[0] = {};
  expectTaken(less);
  std::swap(less.writes[0], less.writes[1]);
  expectTaken(less);
}

TEST(CheckSquaredError, Refuses) {
  const Launch good = {
      .kernel = "squared_error_f32",
      .grid = {kSquaredErrorBlocks, 1, 1},
      .block = {kSquaredErrorThreads, 1, 1},
      .sharedBytes = 0,
      .reads = {{kAddress, {2, 24}, {}, DType::F32}, {kAddress, {2, 24}, {}, DType::F32}},
      .writes = {{kAddress, {}, {}, DType::F32}, {kAddress, {2, 24}, {}, DType::F32}},
      .ints = {48},
      .floats = {1, 2}};
  const std::string elements = "x, target and gradient have to be dense f32[elements]";
  std::vector<Refusal> refusals = withLaunch({});
  for (const int64_t bad : {int64_t(0), int64_t(-48)})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, "elements has to be positive"});
  for (const int64_t bad : {int64_t(47), int64_t(49), INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, elements});
  for (const auto &operand : {readOf(0), readOf(1), writeOf(1)})
    refuseOtherTensors(refusals, operand, elements);
  const std::string loss = "the loss has to be one f32";
  refusals.push_back({[](Launch &l) { l.writes[0].address = 0; }, loss});
  refusals.push_back({[](Launch &l) { l.writes[0].dtype = DType::F64; }, loss});
  refusals.push_back({[](Launch &l) { l.writes[0].sizes = {2}; }, loss});
  expectRefusals(good, refusals);
}

TEST(CheckColumnSums, Refuses) {
  for (const auto &[name, dtype] :
       {std::pair("column_sums_f16", DType::F16), {"column_sums_bf16", DType::BF16}}) {
    const Launch good = {.kernel = name,
                         .grid = {uint32_t(columnSumsBlocks(24)), 1, 1},
                         .block = {kColumnSumsThreads, 1, 1},
                         .sharedBytes = 0,
                         .reads = {{kAddress, {2, 5, 24}, {}, dtype}},
                         .writes = {{kAddress, {24}, {}, DType::F32}},
                         .ints = {10, 24}};
    const std::string numbers = "rows have to be positive, columns a multiple of 8",
                      x = "x has to be dense, [rows, columns], at a multiple of 16 bytes";
    std::vector<Refusal> refusals = withLaunch({{[](Launch &l) { l.reads[0].address += 8; }, x}});
    for (const int64_t bad : {int64_t(0), int64_t(-10), int64_t(1) << 30, INT64_MAX})
      refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, numbers});
    for (const int64_t bad : {int64_t(0), int64_t(-24), int64_t(20), int64_t(1) << 31, INT64_MAX})
      refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; }, numbers});
    refuseOtherTensors(refusals, readOf(0), x);
    refuseOtherTensors(refusals, writeOf(0), "the sums have to be dense");
    expectRefusals(good, refusals);
  }
}

} // namespace
} // namespace cgc::test
