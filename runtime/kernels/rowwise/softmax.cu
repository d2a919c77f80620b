// softmax_* and log_softmax_*: softmax over the last dimension and its logarithm, computed in f32:
// a warp for a short row, a CTA for a long one.
#include "runtime/kernels/rowwise/softmax.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct SoftmaxParameters {
  const T *x;
  T *y;
  int64_t rows, columns;
};

/// The maximum of `value` over the warp, in every lane.
__device__ float warpMax(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

template <class T> __device__ float exponential(float x) {
  if constexpr (std::is_same_v<T, float>)
    return expf(x);
  else
    return __expf(x);
}

/// Reduces `value` over the warps of the CTA with `combine`. With Warps 1, returns `value`.
template <int Warps, class F>
__device__ float overWarps(float (&values)[Warps], float value, F combine) {
  if constexpr (Warps > 1) {
    if (threadIdx.x % 32 == 0)
      values[threadIdx.x / 32] = value;
    __syncthreads();
    value = values[0];
#pragma unroll
    for (int warp = 1; warp < Warps; ++warp)
      value = combine(value, values[warp]);
  }
  return value;
}

/// Computes one row with `Threads` threads, a warp or the CTA, of which this is number `thread`.
/// With Log, the logarithm.
template <int Threads, bool Log, class T>
__device__ void softmaxRow(const T *x, T *y, int64_t columns, int thread) {
  constexpr int kWarps = Threads / 32;
  __shared__ float parts[2][kWarps];
  float largest = -INFINITY;
  for (int64_t column = thread; column < columns; column += Threads)
    largest = fmaxf(largest, toFloat(x[column]));
  largest = overWarps(parts[0], warpMax(largest), [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int64_t column = thread; column < columns; column += Threads)
    sum += exponential<T>(toFloat(x[column]) - largest);
  sum = overWarps(parts[1], warpSum(sum), [](float a, float b) { return a + b; });
  const float logOfSum = Log ? logf(sum) : 0;
  for (int64_t column = thread; column < columns; column += Threads)
    if constexpr (Log)
      y[column] = fromFloat<T>(toFloat(x[column]) - largest - logOfSum);
    else
      y[column] = fromFloat<T>(exponential<T>(toFloat(x[column]) - largest) / sum);
}

template <class T, bool Log>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax(const __grid_constant__ SoftmaxParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.columns > kSoftmaxWarpColumns) {
    const int64_t start = int64_t(blockIdx.x) * p.columns;
    softmaxRow<kSoftmaxThreads, Log>(p.x + start, p.y + start, p.columns, threadIdx.x);
    return;
  }
  const int64_t row = int64_t(blockIdx.x) * (kSoftmaxThreads / 32) + threadIdx.x / 32;
  if (row < p.rows)
    softmaxRow<32, Log>(p.x + row * p.columns, p.y + row * p.columns, p.columns, threadIdx.x % 32);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const SoftmaxLaunch l = *checkSoftmax(launch, kDTypeOf<T>);
  return KernelParameters(SoftmaxParameters<T>{static_cast<const T *>(at.reads[0]),
                                               static_cast<T *>(at.writes[0]), l.rows, l.columns});
}

} // namespace

CGC_KERNEL_OF(softmax_f32, (softmax<float, false>), bind<float>)
CGC_KERNEL_OF(softmax_f16, (softmax<__half, false>), bind<__half>)
CGC_KERNEL_OF(softmax_bf16, (softmax<__nv_bfloat16, false>), bind<__nv_bfloat16>)
CGC_KERNEL_OF(log_softmax_f32, (softmax<float, true>), bind<float>)
CGC_KERNEL_OF(log_softmax_f16, (softmax<__half, true>), bind<__half>)
CGC_KERNEL_OF(log_softmax_bf16, (softmax<__nv_bfloat16, true>), bind<__nv_bfloat16>)

} // namespace cgc
