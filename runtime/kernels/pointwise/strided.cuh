// Device helpers of kernels that iterate over strided operands (strided.h).
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/pointwise/strided.h"

namespace cgc::device {

struct Offsets {
  int64_t of[kStridedOperands];
};

__device__ inline Offsets offsets(const StridedLayout &layout, uint32_t unit) {
  Offsets result = {};
#pragma unroll
  for (int d = 0; d < kElementwiseRank; ++d) {
    if (d >= layout.rank)
      break;
    uint32_t index = unit;
    if (d + 1 < layout.rank) {
      unit = layout.sizes[d].quotient(index);
      index -= unit * layout.sizes[d].divisor;
    }
#pragma unroll
    for (int k = 0; k < kStridedOperands; ++k)
      result.of[k] += index * layout.strides[k][d];
  }
  return result;
}

/// Calls `f(offsets)` for this thread's units.
template <class F> __device__ void forUnits(const StridedLayout &layout, F f) {
  for (uint32_t unit = blockIdx.x * kElementwiseThreads + threadIdx.x; unit < layout.units;
       unit += gridDim.x * kElementwiseThreads)
    f(offsets(layout, unit));
}

/// Loads a unit of an operand. `step` is the operand's stride along the innermost dimension; with
/// 0, one element is repeated.
template <int Width, class T> __device__ Pack<T, Width> loadUnit(const T *from, int64_t step) {
  if (step != 0)
    return *reinterpret_cast<const Pack<T, Width> *>(from);
  Pack<T, Width> unit;
  const T value = *from;
#pragma unroll
  for (int i = 0; i < Width; ++i)
    unit.v[i] = value;
  return unit;
}

} // namespace cgc::device
