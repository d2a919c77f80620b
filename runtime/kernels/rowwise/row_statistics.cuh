// Computes and writes row statistics (row_statistics.h) on the device.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/rowwise/row_statistics.h"

namespace cgc::device {

/// The sum of some elements of a row, and the sum of their squares. In f32 they give a variance as
/// accurate as the 16-bit elements allow, whose rounding errors relative to the deviation grow with
/// mean / deviation.
struct alignas(8) RowStatistics {
  float sum, squares;
  __device__ void add(float2 two) {
    sum += two.x + two.y;
    squares += two.x * two.x + two.y * two.y;
  }
  /// Adds two consecutive statistics, loaded as one vector.
  __device__ void addTwo(float4 statistics) {
    sum += statistics.x + statistics.z;
    squares += statistics.y + statistics.w;
  }
};

/// Adds up the statistics of each eight consecutive lanes; the first of them writes the sum to its
/// `to` if it is `inside`. All lanes of a warp call it.
__device__ inline void storeSumOfLanes(RowStatistics *to, bool inside, const RowStatistics &own) {
  const bool ofSquares =
      threadIdx.x & 4; // Four of the eight lanes reduce the squares, four the sums.
  float sum = ofSquares ? own.squares : own.sum;
  sum += __shfl_xor_sync(0xffffffffu, ofSquares ? own.sum : own.squares, 4);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  const float squares = __shfl_down_sync(0xffffffffu, sum, 4);
  if (inside && threadIdx.x % 8 == 0)
    *to = {sum, squares};
}

/// Whether kernels of these elements can write row statistics: gemm_norm reads those of 16-bit
/// elements only.
template <class T> constexpr bool kHasRowStatistics = sizeof(T) == 2;

/// Writes the statistics of 64 columns for each eight consecutive lanes. A lane has eight of the
/// columns, which it has stored rounded to T. All lanes of a warp call it; lanes that are not
/// `inside` contribute nothing.
template <class T>
__device__ void storeRowStatistics(RowStatistics *to, bool inside, const float (&values)[8]) {
  const auto stored = [](float value) { return toFloat(fromFloat<T>(value)); };
  RowStatistics statistics{};
#pragma unroll
  for (int i = 0; i < 8; i += 2)
    statistics.add(inside ? float2{stored(values[i]), stored(values[i + 1])} : float2{});
  storeSumOfLanes(to, inside, statistics);
}

} // namespace cgc::device
