// Checks launches of layer_norm_statistics_*, layer_norm_backward_* and layer_norm_parameters_f32.
#include "runtime/kernels/rowwise/layer_norm_train.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// The rows and columns of the launch's ints. Nothing if the kernel for `mostColumns` does not take
/// them.
std::optional<NormTrainLaunch> rowsOf(const LaunchView &launch, int64_t mostColumns) {
  const int64_t rows = launch.ints[0], columns = launch.ints[1];
  if (rows < 1 || rows > INT32_MAX || normTrainColumns(columns) != mostColumns)
    return std::nullopt;
  return NormTrainLaunch{rows, columns};
}

Status refuseRows() {
  return refuseLaunch("rows have to be positive, columns a multiple of 4 that the kernel is for");
}

/// Whether an operand is dense, of so many elements, and aligned for vectors of four.
bool isRows(const OperandView &operand, DType dtype, uint64_t elements) {
  return isDenseOf(operand, dtype, elements) && isAligned(operand, 4 * dtypeSize(dtype));
}
bool isAbsentOrRows(const OperandView &operand, DType dtype, uint64_t elements) {
  return !operand.isPresent() || isRows(operand, dtype, elements);
}

} // namespace

Result<NormTrainLaunch> checkNormStatistics(const LaunchView &launch, DType dtype,
                                            int64_t mostColumns) {
  const auto shape = rowsOf(launch, mostColumns);
  if (!shape)
    return refuseRows();
  const auto [rows, columns] = *shape;
  if (!hasShape(launch, normStatisticsBlocks(rows), kNormStatisticsThreads))
    return refuseLaunch("the grid has to be {ceil(rows / 4), 1, 1}, the block {128, 1, 1}, without "
                        "shared memory");
  if (!isRows(launch.reads[0], DType::F32, rows * columns) ||
      !isRows(launch.writes[0], dtype, rows * columns))
    return refuseLaunch("x and y have to be dense, [rows, columns], at multiples of 4 elements");
  for (const OperandView &parameter : launch.reads.subspan(1, 2))
    if (!isAbsentOrRows(parameter, DType::F32, columns))
      return refuseLaunch("weight and bias have to be dense f32[columns]");
  for (const OperandView &statistics : launch.writes.subspan(1, 2))
    if (!isDenseOf(statistics, DType::F32, rows))
      return refuseLaunch("mean and rstd have to be dense f32[rows]");
  const OperandView &addend = launch.reads[3], &sum = launch.writes[3];
  if (addend.isPresent() != sum.isPresent() || !isAbsentOrRows(sum, DType::F32, rows * columns) ||
      (!isAbsentOrRows(addend, dtype, rows * columns) &&
       !isAbsentOrRows(addend, DType::F32, rows * columns)))
    return refuseLaunch("the addend has to be dense, of x's elements in f32 or the dtype of y, and "
                        "the sum dense f32, or both absent");
  return *shape;
}

Result<NormTrainLaunch> checkNormBackward(const LaunchView &launch, DType dtype,
                                          int64_t mostColumns) {
  const auto shape = rowsOf(launch, mostColumns);
  if (!shape)
    return refuseRows();
  const auto [rows, columns] = *shape;
  const uint64_t blocks = launch.grid[0];
  if (blocks == 0 || blocks > normBackwardMostBlocks(rows, columns) ||
      !hasShape(launch, blocks, normBackwardThreads(columns), normBackwardSharedBytes(columns)))
    return refuseLaunch(
        "the grid has to be {1 to normBackwardMostBlocks(), 1, 1}, block and shared "
        "memory those of normBackwardThreads() and normBackwardSharedBytes()");
  const uint64_t elements = rows * columns;
  if (!isRows(launch.reads[0], dtype, elements) || !isRows(launch.reads[1], DType::F32, elements) ||
      !isAbsentOrRows(launch.reads[5], DType::F32, elements))
    return refuseLaunch("grad, x and residual have to be dense, [rows, columns], at multiples of 4 "
                        "elements");
  for (const OperandView &statistics : launch.reads.subspan(2, 2))
    if (!isDenseOf(statistics, DType::F32, rows))
      return refuseLaunch("mean and rstd have to be dense f32[rows]");
  if (!isAbsentOrRows(launch.reads[4], DType::F32, columns))
    return refuseLaunch("weight has to be dense f32[columns]");
  const OperandView &copy = launch.writes[1];
  const bool copies = !copy.isPresent() || (dtypeSize(copy.dtype) == 2 && dtype == copy.dtype &&
                                            isRows(copy, copy.dtype, elements));
  if (!isRows(launch.writes[0], DType::F32, elements) || !copies ||
      !isRows(launch.writes[2], DType::F32, blocks * 2 * columns))
    return refuseLaunch("grad_x has to be dense f32[rows, columns], its copy of the dtype of grad, "
                        "the partial sums f32[CTAs, 2, columns]");
  return *shape;
}

Result<NormTrainLaunch> checkNormParameters(const LaunchView &launch) {
  const int64_t partials = launch.ints[0], columns = launch.ints[1];
  // Half of the largest int, so that the kernel may add a step to the last partial sum.
  if (partials < 1 || partials > INT32_MAX / 2 || normTrainColumns(columns) == 0)
    return refuseLaunch("partial sums and columns have to be positive, and those of a kernel");
  if (!hasShape(launch, (columns + kNormParameterColumns - 1) / kNormParameterColumns,
                kNormParameterThreads))
    return refuseLaunch("the grid has to be {ceil(columns / 32), 1, 1}, the block {256, 1, 1}, "
                        "without shared memory");
  if (!isDenseOf(launch.reads[0], DType::F32, partials * 2 * columns))
    return refuseLaunch("the partial sums have to be dense f32[partials, 2, columns]");
  for (const OperandView &result : launch.writes)
    if (!isAbsentOrDenseOf(result, DType::F32, columns))
      return refuseLaunch("grad_weight and grad_bias have to be dense f32[columns]");
  return NormTrainLaunch{partials, columns};
}

#define CGC_LAYER_NORM_TRAIN_CHECKS(NAME, DTYPE, COLUMNS)                                          \
  CGC_KERNEL_CHECK(layer_norm_statistics_##NAME##_##COLUMNS, checkNormStatistics, DTYPE, COLUMNS)  \
  CGC_KERNEL_CHECK(layer_norm_backward_##NAME##_##COLUMNS, checkNormBackward, DTYPE, COLUMNS)
CGC_LAYER_NORM_TRAIN_CHECKS(f32, DType::F32, 1024)
CGC_LAYER_NORM_TRAIN_CHECKS(f16, DType::F16, 1024)
CGC_LAYER_NORM_TRAIN_CHECKS(bf16, DType::BF16, 1024)
CGC_LAYER_NORM_TRAIN_CHECKS(f32, DType::F32, 2048)
CGC_LAYER_NORM_TRAIN_CHECKS(f16, DType::F16, 2048)
CGC_LAYER_NORM_TRAIN_CHECKS(bf16, DType::BF16, 2048)
#undef CGC_LAYER_NORM_TRAIN_CHECKS
CGC_KERNEL_CHECK(layer_norm_parameters_f32, checkNormParameters)

} // namespace cgc
