// Checks launches of column_sums_*.
#include "runtime/kernels/rowwise/column_sums.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<ColumnSumsLaunch> checkColumnSums(const LaunchView &launch, DType dtype) {
  const int64_t rows = launch.ints[0], columns = launch.ints[1];
  const auto elements =
      rows > 0 && columns > 0 ? checkedMul(rows, columns) : std::optional<uint64_t>();
  // Half of the largest int, so that the kernel may add a step to the last row.
  if (!elements || rows > INT32_MAX / 2 || columns > INT32_MAX || columns % kColumnSumsVector != 0)
    return refuseLaunch("rows have to be positive, columns a multiple of 8");
  if (!hasShape(launch, columnSumsBlocks(columns), kColumnSumsThreads))
    return refuseLaunch("the grid has to be {ceil(columns / 16), 1, 1}, the block {512, 1, 1}, "
                        "without shared memory");
  if (!isDenseOf(launch.reads[0], dtype, *elements) || !isAligned(launch.reads[0], 16))
    return refuseLaunch("x has to be dense, [rows, columns], at a multiple of 16 bytes");
  if (!isDenseOf(launch.writes[0], DType::F32, columns))
    return refuseLaunch("the sums have to be dense f32[columns]");
  return ColumnSumsLaunch{rows, columns};
}

CGC_KERNEL_CHECK(column_sums_f16, checkColumnSums, DType::F16)
CGC_KERNEL_CHECK(column_sums_bf16, checkColumnSums, DType::BF16)

} // namespace cgc
