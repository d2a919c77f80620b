// Checks of operands and launches for the checks of kernels, and macros that define those.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc {

/// The number of elements of a plan's tensor. It does not overflow: validate() has checked the
/// sizes.
inline uint64_t elementsOf(const OperandView &operand) {
  uint64_t count = 1;
  for (int64_t size : operand.sizes)
    count *= static_cast<uint64_t>(size);
  return count;
}

/// Whether `operand` is present, dense, of `dtype`, and has exactly `elements` elements.
inline bool isDenseOf(const OperandView &operand, DType dtype, uint64_t elements) {
  return operand.isPresent() && operand.dtype == dtype && operand.strides.empty() &&
         elementsOf(operand) == elements;
}

/// Whether an optional operand is absent or satisfies isDenseOf().
inline bool isAbsentOrDenseOf(const OperandView &operand, DType dtype, uint64_t elements) {
  return !operand.isPresent() || isDenseOf(operand, dtype, elements);
}

/// Whether `operand` is present, dense, of i64 or i32, and has exactly `elements` elements.
inline bool isIndicesOf(const OperandView &operand, uint64_t elements) {
  return isDenseOf(operand, DType::I64, elements) || isDenseOf(operand, DType::I32, elements);
}

/// Whether the address is a multiple of `bytes`, a power of two. True for an absent operand.
inline bool isAligned(const OperandView &operand, uint64_t bytes) {
  return operand.alignment % bytes == 0;
}

/// Whether `operand` can hold the row statistics of a matrix [rows, columns], in aligned pairs of
/// f32.
inline bool isRowStatisticsOf(const OperandView &operand, uint64_t rows, int64_t columns) {
  const auto elements = checkedMul(rows, statisticsGroups(columns) * 2);
  return elements && isDenseOf(operand, DType::F32, *elements) &&
         isAligned(operand, 2 * sizeof(float));
}

/// Whether kernels of `dtype` can write row statistics: gemm_norm reads those of 16-bit elements.
inline bool hasRowStatistics(DType dtype) {
  return dtypeSize(dtype) == 2;
}

/// Whether consecutive rows of `columns` elements can be read 16 bytes at a time. True for an
/// absent operand.
inline bool hasVectorRows(const OperandView &operand, int64_t columns) {
  return !operand.isPresent() ||
         (columns * dtypeSize(operand.dtype) % 16 == 0 && isAligned(operand, 16));
}

/// Whether the launch has this one-dimensional grid and block and this much dynamic shared memory.
inline bool hasShape(const LaunchView &launch, uint64_t blocks, uint32_t threads,
                     uint32_t shared = 0) {
  return launch.grid[0] == blocks && launch.grid[1] == 1 && launch.grid[2] == 1 &&
         launch.block[0] == threads && launch.block[1] == 1 && launch.block[2] == 1 &&
         launch.sharedBytes == shared;
}

inline Status refuseLaunch(std::string_view why) {
  return {Code::InvalidFile, std::string(why)};
}

/// InvalidFile if a launch cannot write these row statistics of a matrix [rows, columns].
/// `canWrite` is whether it can write any, which needs the columns that `columnsText` describes.
inline Status checkRowStatistics(const OperandView &statistics, uint64_t rows, int64_t columns,
                                 bool canWrite, const std::string &columnsText) {
  if (!canWrite)
    return refuseLaunch("row statistics are written of " + columnsText +
                        ", if all tensors begin at multiples of 16 bytes");
  if (!isRowStatisticsOf(statistics, rows, columns))
    return refuseLaunch("row statistics have to be dense, two f32 for each 64 columns of a row");
  return Status::ok();
}

/// A dense matrix: the last dimension of an operand, and all dimensions before it as one.
struct DenseRows {
  int64_t rows, columns;
};
/// The rows of `x`, which has elements, for a kernel that writes as many to `y`; both dense and of
/// `dtype`. InvalidFile if they are not.
inline Result<DenseRows> denseRows(const OperandView &x, const OperandView &y, DType dtype) {
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, dtype, elements) || x.sizes.empty() || elements == 0)
    return refuseLaunch("x has to be dense, of one dimension or more");
  if (!isDenseOf(y, dtype, elements))
    return refuseLaunch("y has to be dense, of as many elements as x");
  const int64_t columns = x.sizes.back();
  return DenseRows{static_cast<int64_t>(elements) / columns, columns};
}

/// The error for a launch shape other than that of warp_rows.h.
inline Status refuseWarpRows() {
  return refuseLaunch("the grid has to be {ceil(rows / 4), 1, 1}, the block {128, 1, 1}, without "
                      "shared memory");
}

} // namespace cgc

/// Defines the check of a row of kernels.def, in namespace cgc: that CHECK, a function of a
/// LaunchView and of the further arguments, returns no error.
#define CGC_KERNEL_CHECK(NAME, CHECK, ...)                                                         \
  Status NAME##Check(const LaunchView &launch) {                                                   \
    return CHECK(launch __VA_OPT__(, ) __VA_ARGS__).status();                                      \
  }
/// Defines those of NAME_f32, NAME_f16 and NAME_bf16 from a function that also takes the dtype.
#define CGC_FLOAT_KERNEL_CHECKS(NAME, CHECK)                                                       \
  CGC_KERNEL_CHECK(NAME##_f32, CHECK, DType::F32)                                                  \
  CGC_KERNEL_CHECK(NAME##_f16, CHECK, DType::F16)                                                  \
  CGC_KERNEL_CHECK(NAME##_bf16, CHECK, DType::BF16)
