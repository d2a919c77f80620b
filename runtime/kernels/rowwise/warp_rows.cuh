// Device helpers of kernels that process each row with one warp.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc::device {

/// The row of this warp; may be past the last one.
__device__ inline int64_t warpRow() {
  return int64_t(blockIdx.x) * kWarpRows + threadIdx.x / 32;
}

template <int N> struct Constant {
  __device__ constexpr operator int() const { return N; }
};

/// Calls `f(column, width)` for this lane's parts of a row. `width` is a constant: the elements of
/// 16 bytes if `vectors`, otherwise 1.
template <class T, class F> __device__ void forColumns(int64_t columns, bool vectors, F f) {
  const int lane = threadIdx.x % 32;
  constexpr int kSize = Vector<T>::kSize;
  if (vectors)
    for (int64_t column = lane * kSize; column < columns; column += 32 * kSize)
      f(column, Constant<kSize>());
  else
    for (int64_t column = lane; column < columns; column += 32)
      f(column, Constant<1>());
}

/// to = from + addend for the elements from `column` on. `addend` may be null. `values` receives
/// the sums before they are rounded to T.
template <int Width, class T>
__device__ void addElements(T *to, const T *from, const T *addend, int64_t column,
                            float (&values)[Width]) {
  loadFloats(from + column, values);
  if (addend) {
    float more[Width];
    loadFloats(addend + column, more);
#pragma unroll
    for (int i = 0; i < Width; ++i)
      values[i] += more[i];
  }
  storeFloats(to + column, values);
}

/// to = from + addend for a row, by one warp. `addend` may be null.
template <class T>
__device__ void addRow(T *to, const T *from, const T *addend, int64_t columns, bool vectors) {
  forColumns<T>(columns, vectors, [=](int64_t column, auto width) {
    float values[width];
    addElements(to, from, addend, column, values);
  });
}

/// Element `i` of i64 (`isWide`) or i32 indices, clamped to [0, bound).
__device__ inline int64_t loadIndex(const void *indices, bool isWide, int64_t i, int64_t bound) {
  const int64_t index =
      isWide ? static_cast<const int64_t *>(indices)[i] : static_cast<const int32_t *>(indices)[i];
  return index < 0 ? 0 : index < bound ? index : bound - 1;
}

} // namespace cgc::device
