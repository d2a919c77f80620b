// sum_rows_*: the sum of the rows of each batch, or their mean.
#include "runtime/kernels/rowwise/sum_rows.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct SumRowsParameters {
  const T *x;
  void *y;                                       ///< T, or f32 if `wide`.
  int64_t rows, columns, batchStride, rowStride; ///< Strides of x.
  uint32_t slices;
  float factor;
  bool vectors, wide;
};

/// A thread sums every (kSumRowsThreads / kSumRowsLanes)th row. Shuffles add up the sums of a warp,
/// shared memory those of the warps, always in the same order.
template <class T>
__global__ void __launch_bounds__(kSumRowsThreads)
    sumRows(const __grid_constant__ SumRowsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kSize = Vector<T>::kSize, kColumns = kSumRowsLanes * kSize;
  __shared__ float warpSums[kSumRowsThreads / 32][kColumns];
  const uint32_t batch = blockIdx.x / p.slices;
  const int64_t begin = int64_t(blockIdx.x - batch * p.slices) * kColumns;
  const int lane = threadIdx.x % kSumRowsLanes;
  const int64_t column = begin + lane * kSize;
  // Columns from this thread's first one to the end of the row; may be negative.
  const int64_t width = p.columns - column;

  float sums[kSize] = {};
  const T *x = p.x + batch * p.batchStride + column;
  const int64_t first = threadIdx.x / kSumRowsLanes;
  if (p.vectors && width > 0) {
#pragma unroll 4
    for (int64_t row = first; row < p.rows; row += kSumRowsThreads / kSumRowsLanes) {
      float values[kSize];
      loadFloats(x + row * p.rowStride, values);
#pragma unroll
      for (int i = 0; i < kSize; ++i)
        sums[i] += values[i];
    }
  } else {
    for (int64_t row = first; row < p.rows; row += kSumRowsThreads / kSumRowsLanes)
#pragma unroll
      for (int i = 0; i < kSize; ++i)
        if (i < width)
          sums[i] += toFloat(x[row * p.rowStride + i]);
  }

#pragma unroll
  for (int i = 0; i < kSize; ++i) {
#pragma unroll
    for (int offset = kSumRowsLanes; offset < 32; offset *= 2)
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    if (threadIdx.x % 32 < kSumRowsLanes)
      warpSums[threadIdx.x / 32][lane * kSize + i] = sums[i];
  }
  __syncthreads();
  if (threadIdx.x >= kColumns || begin + threadIdx.x >= p.columns)
    return;
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kSumRowsThreads / 32; ++warp)
    sum += warpSums[warp][threadIdx.x];
  const int64_t at = batch * p.columns + begin + threadIdx.x;
  if (p.wide)
    static_cast<float *>(p.y)[at] = sum * p.factor;
  else
    static_cast<T *>(p.y)[at] = fromFloat<T>(sum * p.factor);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const SumRowsLaunch l = *checkSumRows(launch, kDTypeOf<T>);
  return KernelParameters(SumRowsParameters<T>{
      static_cast<const T *>(at.reads[0]), at.writes[0], l.rows, l.columns, l.batchStride,
      l.rowStride, static_cast<uint32_t>(l.slices), static_cast<float>(launch.floats[0]), l.vectors,
      launch.writes[0].dtype == DType::F32});
}

} // namespace

CGC_FLOAT_KERNELS(sum_rows, sumRows, bind)

} // namespace cgc
