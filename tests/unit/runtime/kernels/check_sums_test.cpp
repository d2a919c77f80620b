// Checks of row_sums, column_sums and squared_error refuse launches that would access memory
// outside their tensors. Needs no GPU.
#include "runtime/kernels/rowwise/column_sums.h"
#include "runtime/kernels/rowwise/row_sums.h"
#include "runtime/kernels/rowwise/squared_error.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

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
