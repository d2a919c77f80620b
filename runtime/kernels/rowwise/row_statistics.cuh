// Moments on the device: what the kernels that write them share.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc::device {

/// The sum of some of a row's elements, and of their squares. In f32 the variance that follows
/// from them is as good as the elements, which have lost mean / deviation times their own
/// precision.
struct alignas(8) Moments {
  float sum, squares;
  __device__ void add(float2 two) {
    sum += two.x + two.y;
    squares += two.x * two.x + two.y * two.y;
  }
  /// Two others, that lie one behind the other.
  __device__ void addTwo(float4 moments) {
    sum += moments.x + moments.z;
    squares += moments.y + moments.w;
  }
};

/// Writes the sum of those of each eight lanes, if the first of them is `inside`. All lanes of a
/// warp call it.
__device__ inline void storeSumOfLanes(Moments *to, bool inside, const Moments &own) {
  const bool ofSquares = threadIdx.x & 4; // What four of the lanes go on with.
  float sum = ofSquares ? own.squares : own.sum;
  sum += __shfl_xor_sync(0xffffffffu, ofSquares ? own.sum : own.squares, 4);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  const float squares = __shfl_down_sync(0xffffffffu, sum, 4);
  if (inside && threadIdx.x % 8 == 0)
    *to = {sum, squares};
}

/// Whether kernels of these elements can write moments: products, which read them, are of 16 bits.
template <class T> constexpr bool kHasMoments = sizeof(T) == 2;

/// Writes the moments of 64 columns for each eight lanes; a lane has eight of the columns, which it
/// has stored rounded to T. All lanes of a warp call it; those that are not `inside` have none.
template <class T>
__device__ void storeMoments(Moments *to, bool inside, const float (&values)[8]) {
  const auto stored = [](float value) { return toFloat(fromFloat<T>(value)); };
  Moments moments{};
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    moments.add(inside ? float2{stored(values[i]), stored(values[i + 1])} : float2{});
  storeSumOfLanes(to, inside, moments);
}

} // namespace cgc::device
