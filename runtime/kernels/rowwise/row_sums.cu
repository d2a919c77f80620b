// row_sums_*: the sums of rows, or of their squares, in f32: a warp for a short row, a CTA for a
// long one or a split of it.
#include "runtime/kernels/rowwise/row_sums.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct RowSumsParameters {
  const T *x;
  void *y; ///< T, or f32 if `wide`.
  int rows, columns, splits, part;
  float factor;
  bool squares, root, vectors, wide;
};

/// The sum of this thread's elements of `x` or of their squares: `thread` is its number among
/// `Threads`.
template <int Threads, class T>
__device__ float sumOfThread(const T *x, int count, int thread, bool squares, bool vectors) {
  float sum = 0;
  const auto add = [&](float value) { sum += squares ? value * value : value; };
  constexpr int kSize = Vector<T>::kSize;
  if (vectors) {
#pragma unroll 4
    for (int i = thread * kSize; i < count; i += Threads * kSize) {
      float values[kSize];
      loadFloats(x + i, values);
#pragma unroll
      for (int k = 0; k < kSize; ++k)
        add(values[k]);
    }
  } else {
#pragma unroll 4
    for (int i = thread; i < count; i += Threads)
      add(toFloat(x[i]));
  }
  return sum;
}

template <class T> __device__ void store(const RowSumsParameters<T> &p, int64_t at, float sum) {
  sum *= p.factor;
  if (p.root)
    sum = sqrtf(sum);
  if (p.wide)
    static_cast<float *>(p.y)[at] = sum;
  else
    static_cast<T *>(p.y)[at] = fromFloat<T>(sum);
}

template <class T>
__global__ void __launch_bounds__(kRowSumsThreads)
    rowSums(const __grid_constant__ RowSumsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWarps = kRowSumsThreads / 32;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (p.columns <= kRowSumsWarpColumns) {
    const int64_t row = int64_t(blockIdx.x) * kWarps + warp;
    if (row >= p.rows)
      return;
    const T *x = p.x + row * p.columns;
    const float sum = warpSum(sumOfThread<32>(x, p.columns, lane, p.squares, p.vectors));
    if (lane == 0)
      store(p, row, sum);
    return;
  }
  const int row = int(blockIdx.x) / p.splits, split = int(blockIdx.x) - row * p.splits;
  const int64_t begin = int64_t(split) * p.part;
  const auto count = static_cast<int>(min(int64_t(p.part), p.columns - begin)); // May be negative.
  const T *x = p.x + int64_t(row) * p.columns + begin;
  const float sum =
      warpSum(sumOfThread<kRowSumsThreads>(x, count, threadIdx.x, p.squares, p.vectors));
  __shared__ float parts[kWarps];
  if (lane == 0)
    parts[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  float total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    total += parts[w];
  store(p, blockIdx.x, total);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const RowSumsLaunch l = *checkRowSums(launch, kDTypeOf<T>);
  return KernelParameters(RowSumsParameters<T>{
      static_cast<const T *>(at.reads[0]), at.writes[0], int(l.rows), int(l.columns), int(l.splits),
      int(l.part), static_cast<float>(launch.floats[0]), launch.ints[1] != 0, launch.ints[2] != 0,
      l.vectors, launch.writes[0].dtype == DType::F32});
}

} // namespace

CGC_FLOAT_KERNELS(row_sums, rowSums, bind)

} // namespace cgc
