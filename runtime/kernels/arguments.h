// What the bind functions of kernels share: tests of tensors, and refusals.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// Whether `tensor` is there, dense, of `dtype`, with exactly `elements` elements. A plan's tensors
/// were checked against overflow.
inline bool isDenseOf(const TensorView &tensor, DType dtype, uint64_t elements) {
  uint64_t count = 1;
  for (int64_t size : tensor.sizes)
    count *= static_cast<uint64_t>(size);
  return tensor.data && tensor.dtype == dtype && tensor.strides.empty() && count == elements;
}

/// Whether an optional tensor is absent, or as isDenseOf says.
inline bool isAbsentOrDenseOf(const TensorView &tensor, DType dtype, uint64_t elements) {
  return !tensor.data || isDenseOf(tensor, dtype, elements);
}

/// Whether the launch has this one-dimensional grid and block, and this much dynamic shared memory.
inline bool hasLaunch(const KernelArguments &a, uint64_t blocks, uint32_t threads,
                      uint32_t shared = 0) {
  return a.grid[0] == blocks && a.grid[1] == 1 && a.grid[2] == 1 && a.block[0] == threads &&
         a.block[1] == 1 && a.block[2] == 1 && a.sharedBytes == shared;
}

inline Status refuseArguments(std::string_view why) {
  return {Code::InvalidFile, std::string(why)};
}

} // namespace cgc
