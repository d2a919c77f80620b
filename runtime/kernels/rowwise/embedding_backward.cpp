// Checks launches of embedding_backward_*.
#include "runtime/kernels/rowwise/embedding_backward.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<EmbeddingBackwardLaunch> checkEmbeddingBackward(const LaunchView &launch, DType dtype) {
  const OperandView &x = launch.reads[0], &ids = launch.reads[1], &y = launch.writes[0];
  if (!isDenseOf(y, dtype, elementsOf(y)) || y.sizes.size() != 2 || elementsOf(y) == 0)
    return refuseLaunch("y has to be dense, [rows of the table, columns]");
  const int64_t columns = y.sizes[1];
  const uint64_t rows = elementsOf(ids);
  // Half of the largest int, so that the kernel may add a step to the last row.
  if (!isIndicesOf(ids, rows) || rows == 0 || rows > INT32_MAX / 2)
    return refuseLaunch("ids have to be dense i64 or i32");
  const auto elements = checkedMul(rows, columns);
  if (!elements || !isDenseOf(x, dtype, *elements))
    return refuseLaunch("x has to be dense, a row for each id");
  const uint64_t slices =
      (uint64_t(columns) + kEmbeddingBackwardColumns - 1) / kEmbeddingBackwardColumns;
  LaunchView oneSlice = launch;
  const uint32_t grid[] = {launch.grid[0], 1, launch.grid[2]};
  oneSlice.grid = grid;
  if (launch.grid[1] != slices || slices > UINT16_MAX ||
      !hasShape(oneSlice, rows, kEmbeddingBackwardThreads))
    return refuseLaunch("the grid has to be {rows, ceil(columns / 128), 1}, the block "
                        "{256, 1, 1}, without shared memory");
  return EmbeddingBackwardLaunch{static_cast<int64_t>(rows), columns, y.sizes[0],
                                 columns % 4 == 0 && isAligned(x, 4 * dtypeSize(dtype))};
}

CGC_FLOAT_KERNEL_CHECKS(embedding_backward, checkEmbeddingBackward)

} // namespace cgc
