// column_sums against double precision: few and many rows, and columns that leave a rest.
#include "runtime/kernels/rowwise/column_sums.h"
#include "tests/conformance/kernel_fixture.h"

#include <algorithm>

namespace cgc::test {
namespace {

class ColumnSums : public KernelTest {};
CGC_ON_ALL_EXECUTORS(ColumnSums);

TEST_P(ColumnSums, OfRows) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t columns : {8, 24, 64, 512, 768, 1280, 2048})
      for (const int64_t rows : {1, 5, 77, 3200}) {
        SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
        const HostTensor x = withRandom(emptyTensor(dtype, {rows, columns}), 1);
        const HostTensor sums = launch({.kernel = named("column_sums", dtype),
                                        .blocks = columnSumsBlocks(columns),
                                        .threads = kColumnSumsThreads,
                                        .reads = {x},
                                        .writes = {emptyTensor(DType::F32, {columns})},
                                        .ints = {rows, columns}})[0];
        const std::vector<double> values = decodeAll(dtype, x.bytes);
        std::vector<double> expected(columns), magnitudes(columns);
        for (size_t i = 0; i < values.size(); ++i) {
          expected[i % columns] += values[i];
          magnitudes[i % columns] += std::abs(values[i]);
        }
        expectNear(
            sums, [&](uint64_t i) { return expected[i]; }, 1e-6,
            1e-6 * *std::ranges::max_element(magnitudes));
      }
}

/// One element that is not finite is in the sum of its column only.
TEST_P(ColumnSums, KeepColumnsApart) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    constexpr int64_t kRows = 700, kColumns = 40;
    std::vector<double> values(kRows * kColumns, 0.25);
    values[699 * kColumns + 33] = NAN;
    values[250 * kColumns + 7] = INFINITY;
    const HostTensor sums =
        launch({.kernel = named("column_sums", dtype),
                .blocks = columnSumsBlocks(kColumns),
                .threads = kColumnSumsThreads,
                .reads = {withValues(emptyTensor(dtype, {kRows, kColumns}), values)},
                .writes = {emptyTensor(DType::F32, {kColumns})},
                .ints = {kRows, kColumns}})[0];
    expectNear(sums, [&](uint64_t i) { return i == 33 ? NAN : i == 7 ? INFINITY : 0.25 * kRows; });
  }
}

} // namespace
} // namespace cgc::test
