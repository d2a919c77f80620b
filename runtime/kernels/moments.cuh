// Moments on the device: what the kernels that write them share.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/moments.h"

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
  /// Adds up those of each eight lanes, in all of them. All lanes of a warp call it.
  __device__ void addLanes() {
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
  }
};

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
  moments.addLanes();
  if (inside && threadIdx.x % 8 == 0)
    *to = moments;
}

} // namespace cgc::device
