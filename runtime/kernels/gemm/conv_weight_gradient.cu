// conv_weight_gradient_*: the gradient of a convolution's weight, a product whose K is the windows
// of the images. A producer warp loads the gradient of the results, and the pixels that the windows
// have at the same place, into a ring of shared memory by TMA. Each warpgroup multiplies them for
// 64 results. Both operands have their columns dense, as they lie in memory. sum_parts_f32: the sum
// of the parts that the splits of the windows give.
#include "runtime/kernels/gemm/conv_weight_gradient.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/gemm/gemm_common.cuh"

namespace cgc {
namespace {

template <class T> struct WeightGradientParameters {
  CUtensorMap grad, image;
  float *parts;
  Windows windows;
  int results, pixels, channels, groups, steps, stages;
};

template <class T, int kWarpgroups>
__global__ void __launch_bounds__(kWarpgroups * 128 + 32)
    weightGradient(const __grid_constant__ WeightGradientParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kBox = kWeightGradientBox, kBoxBytes = kWeightGradientBoxBytes,
                kGroups = kWeightGradientGroups, kWidth = kGroups * kBox,
                kStageBytes = (kWarpgroups + kGroups) * kBoxBytes, kMostStages = 8;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  __shared__ uint64_t full[kMostStages], empty[kMostStages];

  const int group0 = int(blockIdx.x) * kGroups, row0 = int(blockIdx.y) * kWarpgroups * kBox;
  const int split = int(blockIdx.z), splits = int(gridDim.z);
  const int first = int(int64_t(p.steps) * split / splits),
            steps = int(int64_t(p.steps) * (split + 1) / splits) - first;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == kWarpgroups * 128) {
    prefetchMap(&p.grad);
    prefetchMap(&p.image);
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], kWarpgroups * 4);
    }
    fenceBarrierInit();
  }
  griddepLaunchDependents();
  __syncthreads();
  griddepWait();

  if (warp == kWarpgroups * 4) {
    if (lane != 0)
      return;
    ConvStep columns[kGroups]; // Those behind the last group are loaded and not stored.
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      columns[g] = convStep(p.windows, min(group0 + g, p.groups - 1));
    Ring ring{p.stages};
#pragma unroll 1
    for (int i = 0; i < steps; ++i, ring.next()) {
      if (i >= p.stages)
        waitBarrier(&empty[ring.stage], ring.phase ^ 1);
      uint64_t *const barrier = &full[ring.stage];
      uint8_t *const stage = memory + ring.stage * kStageBytes;
      arriveExpectTx(barrier, kStageBytes);
      const int m = (first + i) * kBox;
#pragma unroll
      for (int w = 0; w < kWarpgroups; ++w)
        tmaLoad2d(stage + w * kBoxBytes, &p.grad, row0 + w * kBox, m, barrier);
      const auto origin = windowOrigin(p.windows, m);
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        tmaLoadPixels(stage + (kWarpgroups + g) * kBoxBytes, &p.image, columns[g].channel, origin.x,
                      origin.y, origin.image, columns[g].dx, columns[g].dy, barrier);
    }
    return;
  }

  const int warpgroup = warp / 4;
  float sums[kWidth / 2];
  const uint64_t a = warpUniform(columnsDescriptor(memory + warpgroup * kBoxBytes, kBoxBytes)),
                 b = columnsDescriptor(memory + kWarpgroups * kBoxBytes, kBoxBytes);
  Ring ring{p.stages};
  int last = 0; // The stage of the previous step.
#pragma unroll 1
  for (int i = 0; i < steps; ++i, ring.next()) {
    waitBarrier(&full[ring.stage], ring.phase);
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < kBox / 16; ++k) { // 16 rows of 128 bytes.
      const int at = ring.stage * kStageBytes + k * 16 * 128;
      WgmmaOfColumns<T, kWidth>::run(sums, descriptorAt(a, at), descriptorAt(b, at), i + k > 0);
    }
    wgmmaCommit();
    wgmmaWait<1>();
    if (i > 0 && lane == 0)
      arrive(&empty[last]);
    last = ring.stage;
  }
  wgmmaWait<0>();

  // A thread has two adjacent columns of every 8, in two rows.
  const int row = row0 + warp * 16 + lane / 4;
  float *const part = p.parts + int64_t(split) * p.results * p.pixels * p.channels;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (group0 + g >= p.groups)
      break;
    const ConvStep column = convStep(p.windows, group0 + g);
#pragma unroll
    for (int j = 0; j < kBox / 8; ++j) {
      const int channel = column.channel + j * 8 + lane % 4 * 2, i = (g * (kBox / 8) + j) * 4;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (row + h * 8 < p.results && channel < p.channels)
          *reinterpret_cast<float2 *>(
              part + (int64_t(row + h * 8) * p.pixels + column.pixel) * p.channels + channel) =
              make_float2(sums[i + 2 * h], sums[i + 2 * h + 1]);
    }
  }
#endif
}

template <class T, int kWarpgroups>
Result<KernelParameters> bindWeightGradient(const LaunchView &launch, const LaunchAddresses &at) {
  constexpr DType dtype = kDTypeOf<T>;
  const WeightGradientLaunch l = *checkConvWeightGradient(launch, dtype, kWarpgroups);
  WeightGradientParameters<T> p{.grad = {},
                                .image = {},
                                .parts = static_cast<float *>(at.writes[0]),
                                .windows = windowsOf(ConvWindows::of(launch.ints), l.channels),
                                .results = int(l.results),
                                .pixels = int(l.pixels),
                                .channels = int(l.channels),
                                .groups = int(l.shape.groups),
                                .steps = int(l.shape.steps),
                                .stages = int(l.shape.stages())};
  CGC_ASSIGN_OR_RETURN(p.grad, tensorMap(at.reads[0], dtype, l.grad));
  CGC_ASSIGN_OR_RETURN(p.image, imageMap(at.reads[1], dtype, l.image));
  return KernelParameters(p);
}

struct SumPartsParameters {
  const float *parts;
  float *y;
  int elements, splits;
};

/// A thread adds up four elements of all parts, in order.
__global__ void __launch_bounds__(kSumPartsThreads)
    sumParts(const __grid_constant__ SumPartsParameters p) {
  griddepLaunchDependents();
  griddepWait();
  const int64_t at = (int64_t(blockIdx.x) * kSumPartsThreads + threadIdx.x) * 4;
  if (at >= p.elements)
    return;
  float4 sum{};
#pragma unroll 8
  for (int s = 0; s < p.splits; ++s) {
    const float4 part = *reinterpret_cast<const float4 *>(p.parts + int64_t(s) * p.elements + at);
    sum = {sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w};
  }
  *reinterpret_cast<float4 *>(p.y + at) = sum;
}

Result<KernelParameters> bindSumParts(const LaunchView &launch, const LaunchAddresses &at) {
  const SumPartsLaunch l = *checkSumParts(launch);
  return KernelParameters(SumPartsParameters{.parts = static_cast<const float *>(at.reads[0]),
                                             .y = static_cast<float *>(at.writes[0]),
                                             .elements = int(l.elements),
                                             .splits = int(l.splits)});
}

} // namespace

CGC_KERNEL_OF(conv_weight_gradient_f16_64, (weightGradient<__half, 1>),
              (bindWeightGradient<__half, 1>))
CGC_KERNEL_OF(conv_weight_gradient_f16_128, (weightGradient<__half, 2>),
              (bindWeightGradient<__half, 2>))
CGC_KERNEL_OF(conv_weight_gradient_bf16_64, (weightGradient<__nv_bfloat16, 1>),
              (bindWeightGradient<__nv_bfloat16, 1>))
CGC_KERNEL_OF(conv_weight_gradient_bf16_128, (weightGradient<__nv_bfloat16, 2>),
              (bindWeightGradient<__nv_bfloat16, 2>))
CGC_KERNEL_OF(sum_parts_f32, sumParts, bindSumParts)

} // namespace cgc
