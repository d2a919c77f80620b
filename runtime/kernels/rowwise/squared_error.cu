// squared_error_f32: a squared error and its gradient in one launch, for losses of up to
// about a million elements (2^20). The CTAs of one cluster share the elements; their sums are added
// in the order of ranks.
#include "runtime/kernels/rowwise/squared_error.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/sm90/hopper.cuh"

namespace cgc {
namespace {

using namespace device;

struct SquaredErrorParameters {
  const float *x, *target;
  float *loss, *gradient;
  int64_t elements;
  float lossFactor, gradientFactor;
  bool vectors;
};

constexpr int kBlocks = int(kSquaredErrorBlocks), kThreads = int(kSquaredErrorThreads);

/// The sum of this thread's squares, and the gradients of its elements, `Width` at a time.
template <int Width> __device__ float squares(const SquaredErrorParameters &p) {
  float sum = 0;
  constexpr int kLoads = 2; // In flight in each thread.
  constexpr int64_t kAll = int64_t(kBlocks) * kThreads * Width;
  const int64_t own = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * Width;
  for (int64_t first = own; first < p.elements; first += kLoads * kAll) {
    float x[kLoads][Width] = {}, target[kLoads][Width] = {};
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
      if (first + l * kAll < p.elements) {
        loadFloats(p.x + first + l * kAll, x[l]);
        loadFloats(p.target + first + l * kAll, target[l]);
      }
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        const float difference = x[l][i] - target[l][i];
        sum = fmaf(difference, difference, sum);
        x[l][i] = p.gradientFactor * difference;
      }
      if (first + l * kAll < p.elements)
        storeFloats(p.gradient + first + l * kAll, x[l]);
    }
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) __cluster_dims__(kBlocks, 1, 1)
    squaredError(const __grid_constant__ SquaredErrorParameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ float sums[kThreads / 32];
  __shared__ float parts[kBlocks]; // In the first CTA: the sums of the others.
  __shared__ uint64_t received;
  const uint32_t rank = clusterRank();
  griddepLaunchDependents();
  if (rank == 0 && threadIdx.x == 0) {
    initBarrier(&received, 1);
    fenceBarrierInit();
    arriveExpectTx(&received, (kBlocks - 1) * sizeof(float));
  }
  __syncwarp();
  syncClusterRelaxed(); // The first CTA can be sent sums.
  griddepWait();
  const float sum = warpSum(p.vectors ? squares<4>(p) : squares<1>(p));
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32)
    return;
  static_assert(kThreads / 32 == 32);
  float all = warpSum(sums[threadIdx.x]);
  if (threadIdx.x != 0)
    return;
  if (rank > 0) {
    sendToCta(addressInCta(&parts[rank], 0), all, addressInCta(&received, 0));
    return;
  }
  waitBarrier(&received, 0);
#pragma unroll
  for (int r = 1; r < kBlocks; ++r)
    all += parts[r];
  *p.loss = p.lossFactor * all;
#endif
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const SquaredErrorLaunch l = *checkSquaredError(launch);
  return KernelParameters(SquaredErrorParameters{
      static_cast<const float *>(at.reads[0]), static_cast<const float *>(at.reads[1]),
      static_cast<float *>(at.writes[0]), static_cast<float *>(at.writes[1]), l.elements,
      float(launch.floats[0]), float(launch.floats[1]), l.vectors});
}

} // namespace

CGC_KERNEL_OF(squared_error_f32, squaredError, bind)

} // namespace cgc
