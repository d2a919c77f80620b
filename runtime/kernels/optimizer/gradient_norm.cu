// square_sums_f32 and gradient_norm_f32: the norm of several tensors together, in two launches and
// always in the same order.
#include "runtime/kernels/optimizer/gradient_norm.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/optimizer/tensor_groups.cuh"

namespace cgc {
namespace {

using namespace device;

struct SquareSumsParameters {
  float *sums;
  GroupTable<1> groups;
};

struct NormParameters {
  const float *sums;
  float *norm;
  uint64_t count;
};

/// The sum of `value` over the CTA, in thread 0.
template <int Threads> __device__ float blockSum(float value) {
  __shared__ float parts[Threads / 32];
  value = warpSum(value);
  __syncthreads(); // The sum before this one has been read.
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32)
    value = warpSum(threadIdx.x < Threads / 32 ? parts[threadIdx.x] : 0.0f);
  return value;
}

__global__ void __launch_bounds__(kGroupThreads, kGroupBlocksPerMultiprocessor)
    squareSums(const __grid_constant__ SquareSumsParameters p) {
  griddepLaunchDependents();
  griddepWait();
  forChunks(p.groups, [&](const GroupChunk &chunk) {
    const float *at = p.groups.tensors[0][chunk.group] + chunk.begin;
    float sum = 0;
    forElements(chunk, [&](auto width, uint32_t i) {
      constexpr int kWidth = decltype(width)::value;
      float x[kWidth];
      loadFloats(at + i, x);
#pragma unroll
      for (int k = 0; k < kWidth; ++k)
        sum += x[k] * x[k];
    });
    sum = blockSum<kGroupThreads>(sum);
    if (threadIdx.x == 0)
      p.sums[chunk.number] = sum;
  });
}

__global__ void __launch_bounds__(kNormThreads)
    gradientNorm(const __grid_constant__ NormParameters p) {
  griddepLaunchDependents();
  griddepWait();
  float sum = 0;
  for (uint64_t i = threadIdx.x; i < p.count; i += kNormThreads)
    sum += p.sums[i];
  sum = blockSum<kNormThreads>(sum);
  if (threadIdx.x == 0)
    *p.norm = sqrtf(sum);
}

Result<KernelParameters> bindSums(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(
      SquareSumsParameters{static_cast<float *>(at.writes[0]),
                           groupTable<kSquareSumsShape.reads, kSquareSumsShape.writes>(
                               *checkSquareSums(launch), at.reads, {})});
}

Result<KernelParameters> bindNorm(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(NormParameters{static_cast<const float *>(at.reads[0]),
                                         static_cast<float *>(at.writes[0]),
                                         *checkGradientNorm(launch)});
}

} // namespace

CGC_KERNEL_OF(square_sums_f32, squareSums, bindSums)
CGC_KERNEL_OF(gradient_norm_f32, gradientNorm, bindNorm)

} // namespace cgc
