// mean_rows_*: the mean of the rows of each batch.
#include "runtime/kernels/rowwise/mean_rows.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct MeanParameters {
  const T *x;
  T *y;
  int64_t rows, columns, batchStride, rowStride; ///< Strides of x.
  uint32_t slices;
  bool vectors;
};

/// A thread sums every (kMeanThreads / kMeanLanes)th row. Shuffles add up the sums of a warp,
/// shared memory those of the warps, always in the same order.
template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    meanRows(const __grid_constant__ MeanParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kSize = Vector<T>::kSize, kColumns = kMeanLanes * kSize;
  __shared__ float warpSums[kMeanThreads / 32][kColumns];
  const uint32_t batch = blockIdx.x / p.slices;
  const int64_t begin = int64_t(blockIdx.x - batch * p.slices) * kColumns;
  const int lane = threadIdx.x % kMeanLanes;
  const int64_t column = begin + lane * kSize;
  // Columns from this thread's first one to the end of the row; may be negative.
  const int64_t width = p.columns - column;

  float sums[kSize] = {};
  const T *x = p.x + batch * p.batchStride + column;
  const int64_t first = threadIdx.x / kMeanLanes;
  if (p.vectors && width > 0) {
#pragma unroll 4
    for (int64_t row = first; row < p.rows; row += kMeanThreads / kMeanLanes) {
      float values[kSize];
      loadFloats(x + row * p.rowStride, values);
#pragma unroll
      for (int i = 0; i < kSize; ++i)
        sums[i] += values[i];
    }
  } else {
    for (int64_t row = first; row < p.rows; row += kMeanThreads / kMeanLanes)
#pragma unroll
      for (int i = 0; i < kSize; ++i)
        if (i < width)
          sums[i] += toFloat(x[row * p.rowStride + i]);
  }

#pragma unroll
  for (int i = 0; i < kSize; ++i) {
#pragma unroll
    for (int offset = kMeanLanes; offset < 32; offset *= 2)
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    if (threadIdx.x % 32 < kMeanLanes)
      warpSums[threadIdx.x / 32][lane * kSize + i] = sums[i];
  }
  __syncthreads();
  if (threadIdx.x >= kColumns || begin + threadIdx.x >= p.columns)
    return;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kMeanThreads / 32; ++warp)
    sum += warpSums[warp][threadIdx.x];
  p.y[batch * p.columns + begin + threadIdx.x] = fromFloat<T>(sum / static_cast<float>(p.rows));
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const MeanRowsLaunch l = *checkMeanRows(launch, kDTypeOf<T>);
  return KernelParameters(MeanParameters<T>{
      static_cast<const T *>(at.reads[0]), static_cast<T *>(at.writes[0]), l.rows, l.columns,
      l.batchStride, l.rowStride, static_cast<uint32_t>(l.slices), l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(mean_rows, meanRows, bind)

} // namespace cgc
