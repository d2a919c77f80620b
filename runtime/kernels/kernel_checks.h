// Checks of tensors and launches for the bind functions of kernels.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc {

/// The number of elements of a plan's tensor. It does not overflow: validate() has checked the
/// sizes.
inline uint64_t elementsOf(const TensorView &tensor) {
  uint64_t count = 1;
  for (int64_t size : tensor.sizes)
    count *= static_cast<uint64_t>(size);
  return count;
}

/// Whether `tensor` is present, dense, of `dtype`, and has exactly `elements` elements.
inline bool isDenseOf(const TensorView &tensor, DType dtype, uint64_t elements) {
  return tensor.data && tensor.dtype == dtype && tensor.strides.empty() &&
         elementsOf(tensor) == elements;
}

/// Whether an optional tensor is absent or satisfies isDenseOf().
inline bool isAbsentOrDenseOf(const TensorView &tensor, DType dtype, uint64_t elements) {
  return !tensor.data || isDenseOf(tensor, dtype, elements);
}

/// Whether `tensor` is present, dense, of i64 or i32, and has exactly `elements` elements.
inline bool isIndicesOf(const TensorView &tensor, uint64_t elements) {
  return isDenseOf(tensor, DType::I64, elements) || isDenseOf(tensor, DType::I32, elements);
}

/// Whether `tensor` can hold the row statistics of a matrix [rows, columns], in aligned pairs of
/// f32.
inline bool isRowStatisticsOf(const TensorView &tensor, uint64_t rows, int64_t columns) {
  const auto elements = checkedMul(rows, statisticsGroups(columns) * 2);
  return elements && isDenseOf(tensor, DType::F32, *elements) &&
         reinterpret_cast<uintptr_t>(tensor.data) % (2 * sizeof(float)) == 0;
}

/// Whether consecutive rows of `columns` elements can be read 16 bytes at a time. True for an
/// absent tensor.
inline bool hasVectorRows(const TensorView &tensor, int64_t columns) {
  return !tensor.data || (columns * dtypeSize(tensor.dtype) % 16 == 0 &&
                          reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0);
}

/// Whether the launch has this one-dimensional grid and block and this much dynamic shared memory.
inline bool hasLaunch(const KernelArguments &a, uint64_t blocks, uint32_t threads,
                      uint32_t shared = 0) {
  return a.grid[0] == blocks && a.grid[1] == 1 && a.grid[2] == 1 && a.block[0] == threads &&
         a.block[1] == 1 && a.block[2] == 1 && a.sharedBytes == shared;
}

inline Status refuseArguments(std::string_view why) {
  return {Code::InvalidFile, std::string(why)};
}

/// The error for a launch shape other than that of warp_rows.h.
inline Status refuseWarpRows() {
  return refuseArguments(
      "the grid has to be {ceil(rows / 4), 1, 1}, the block {128, 1, 1}, without "
      "shared memory");
}

} // namespace cgc

/// Defines the two functions of a row of kernels.def, in namespace cgc.
#define CGC_KERNEL_OF(NAME, GLOBAL, BIND)                                                          \
  const void *NAME##Function() {                                                                   \
    return reinterpret_cast<const void *>(&GLOBAL);                                                \
  }                                                                                                \
  Result<KernelParameters> NAME##Bind(const KernelArguments &arguments) {                          \
    return BIND(arguments);                                                                        \
  }
/// Defines those of NAME_f32, NAME_f16 and NAME_bf16 from templates on the element type.
#define CGC_FLOAT_KERNELS(NAME, GLOBAL, BIND)                                                      \
  CGC_KERNEL_OF(NAME##_f32, GLOBAL<float>, BIND<float>)                                            \
  CGC_KERNEL_OF(NAME##_f16, GLOBAL<__half>, BIND<__half>)                                          \
  CGC_KERNEL_OF(NAME##_bf16, GLOBAL<__nv_bfloat16>, BIND<__nv_bfloat16>)
