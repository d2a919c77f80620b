// layer_norm_statistics_*, layer_norm_backward_* and layer_norm_parameters_f32: layer normalization
// of f32 rows in training, one warp for each row. The gradients of weight and bias are added in a
// fixed order: by each warp over its rows, by each CTA over its warps, then over the CTAs.
#include "runtime/kernels/rowwise/layer_norm_train.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

constexpr int kVector = kNormTrainVector;

template <class T> struct StatisticsParameters {
  const float *x, *weight, *bias; ///< weight and bias may be null.
  const T *addend;                ///< One of these is added to x, or both are null.
  const float *wideAddend;
  T *y;
  float *mean, *rstd, *sum; ///< sum is null without an addend.
  int64_t rows;
  int columns;
  float eps;
};

template <class T> struct BackwardParameters {
  const T *grad;
  const float *x, *mean, *rstd, *weight, *residual; ///< weight and residual may be null.
  float *dX;
  T *copy;     ///< dX rounded; may be null.
  float *sums; ///< [CTAs, 2, columns]: of the gradients of weight and bias.
  int64_t rows;
  int columns;
};

struct ReduceParameters {
  const float *sums;
  float *dWeight, *dBias; ///< May be null.
  int partials, columns;
};

/// A row in the registers of a warp: lane l has elements 4 (l + 32 k) to 4 (l + 32 k) + 3.
template <int kChunks> struct Row {
  float v[kChunks][kVector];
};

/// Calls f(k, column) for the chunks of this lane.
template <int kChunks, class F> __device__ void forChunks(int columns, F f) {
#pragma unroll
  for (int k = 0; k < kChunks; ++k)
    if (const int column = (int(threadIdx.x) % 32 + 32 * k) * kVector; column < columns)
      f(k, column);
}

/// The chunks of a lane in rows of up to kColumns elements.
template <int kColumns> constexpr int kChunksOf = kColumns / (32 * kVector);

template <class T, int kColumns>
__global__ void __launch_bounds__(kNormStatisticsThreads)
    normStatistics(const __grid_constant__ StatisticsParameters<T> p) {
  constexpr int kChunks = kChunksOf<kColumns>;
  griddepLaunchDependents();
  griddepWait();
  const int64_t row = int64_t(blockIdx.x) * (kNormStatisticsThreads / 32) + threadIdx.x / 32;
  if (row >= p.rows)
    return;
  const int64_t first = row * p.columns;
  Row<kChunks> x, more; // All loads come before the first store, which might be to their memory.
  float sum = 0, squares = 0;
  forChunks<kChunks>(p.columns,
                     [&](int k, int column) { loadFloats(p.x + first + column, x.v[k]); });
  if (p.addend)
    forChunks<kChunks>(
        p.columns, [&](int k, int column) { loadFloats(p.addend + first + column, more.v[k]); });
  if (p.wideAddend)
    forChunks<kChunks>(p.columns, [&](int k, int column) {
      loadFloats(p.wideAddend + first + column, more.v[k]);
    });
  if (p.sum)
    forChunks<kChunks>(p.columns, [&](int k, int column) {
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        x.v[k][i] += more.v[k][i];
      storeFloats(p.sum + first + column, x.v[k]);
    });
  forChunks<kChunks>(p.columns, [&](int k, int) {
#pragma unroll
    for (float value : x.v[k])
      sum += value;
  });
  const float mean = warpSum(sum) / float(p.columns);
  forChunks<kChunks>(p.columns, [&](int k, int) {
#pragma unroll
    for (float value : x.v[k])
      squares += (value - mean) * (value - mean);
  });
  const float rstd = rsqrtf(warpSum(squares) / float(p.columns) + p.eps);
  forChunks<kChunks>(p.columns, [&](int k, int column) {
    float weight[kVector] = {1, 1, 1, 1}, bias[kVector] = {};
    if (p.weight)
      loadFloats(p.weight + column, weight);
    if (p.bias)
      loadFloats(p.bias + column, bias);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      x.v[k][i] = (x.v[k][i] - mean) * rstd * weight[i] + bias[i];
    storeFloats(p.y + first + column, x.v[k]);
  });
  if (threadIdx.x % 32 == 0) {
    p.mean[row] = mean;
    p.rstd[row] = rstd;
  }
}

/// Loads four floats that nothing writes while the kernel runs, so that stores before the load do
/// not delay it.
__device__ void loadConstants(const float *from, float (&values)[kVector]) {
  const float4 loaded = __ldg(reinterpret_cast<const float4 *>(from));
  values[0] = loaded.x;
  values[1] = loaded.y;
  values[2] = loaded.z;
  values[3] = loaded.w;
}

/// values += more, four floats in shared memory.
__device__ void addTo(float *values, const float (&more)[kVector]) {
  float sums[kVector];
  loadFloats(values, sums);
#pragma unroll
  for (int i = 0; i < kVector; ++i)
    sums[i] += more[i];
  storeFloats(values, sums);
}

template <class T, int kColumns>
__global__ void __launch_bounds__(normBackwardThreads(kColumns))
    normBackward(const __grid_constant__ BackwardParameters<T> p) {
  constexpr int kChunks = kChunksOf<kColumns>;
  extern __shared__ float4 memory[];
  griddepLaunchDependents();
  griddepWait();
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, columns = p.columns;
  float *const all = reinterpret_cast<float *>(memory);
  float *const weightSums = all + warp * 2 * columns, *const biasSums = weightSums + columns;
  const float zeros[kVector] = {};
  forChunks<kChunks>(columns, [&](int, int column) {
    storeFloats(weightSums + column, zeros);
    storeFloats(biasSums + column, zeros);
  });
  for (int64_t row = int64_t(blockIdx.x) * warps + warp; row < p.rows;
       row += int64_t(gridDim.x) * warps) {
    const int64_t first = row * columns;
    const float mean = p.mean[row], rstd = p.rstd[row];
    // All loads come before the first store, which might be to their memory.
    Row<kChunks> x, grad, residual;
    forChunks<kChunks>(columns, [&](int k, int column) {
      loadFloats(p.x + first + column, x.v[k]);
      loadFloats(p.grad + first + column, grad.v[k]);
    });
    if (p.residual)
      forChunks<kChunks>(columns, [&](int k, int column) {
        loadFloats(p.residual + first + column, residual.v[k]);
      });
    // x becomes the normalized values, grad their gradients.
    float sum = 0, product = 0;
    forChunks<kChunks>(columns, [&](int k, int column) {
      float weight[kVector] = {1, 1, 1, 1}, weighted[kVector];
      if (p.weight)
        loadConstants(p.weight + column, weight);
      addTo(biasSums + column, grad.v[k]);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        x.v[k][i] = (x.v[k][i] - mean) * rstd;
        weighted[i] = grad.v[k][i] * x.v[k][i];
        grad.v[k][i] *= weight[i];
        sum += grad.v[k][i];
        product += grad.v[k][i] * x.v[k][i];
      }
      addTo(weightSums + column, weighted);
    });
    sum = warpSum(sum) / float(columns);
    product = warpSum(product) / float(columns);
    forChunks<kChunks>(columns, [&](int k, int column) {
      float result[kVector];
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        result[i] =
            (p.residual ? residual.v[k][i] : 0) + (grad.v[k][i] - sum - x.v[k][i] * product) * rstd;
      storeFloats(p.dX + first + column, result);
      if (p.copy)
        storeFloats(p.copy + first + column, result);
    });
  }
  __syncthreads();
  float *const to = p.sums + int64_t(blockIdx.x) * 2 * columns;
  for (int i = threadIdx.x; i < 2 * columns; i += blockDim.x) {
    float sum = 0;
    for (int w = 0; w < warps; ++w)
      sum += all[w * 2 * columns + i];
    to[i] = sum;
  }
}

/// A CTA adds the partial sums of 32 columns, by eight warps.
__global__ void __launch_bounds__(kNormParameterThreads)
    normParameters(const __grid_constant__ ReduceParameters p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWarps = kNormParameterThreads / 32;
  __shared__ float parts[2][kWarps][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int column = blockIdx.x * int(kNormParameterColumns) + lane;
  float weight = 0, bias = 0;
  if (column < p.columns)
#pragma unroll 4
    for (int i = warp; i < p.partials; i += kWarps) {
      const float *const sums = p.sums + int64_t(i) * 2 * p.columns + column;
      weight += sums[0];
      bias += sums[p.columns];
    }
  parts[0][warp][lane] = weight;
  parts[1][warp][lane] = bias;
  __syncthreads();
  float *const to = warp == 0 ? p.dWeight : p.dBias;
  if (warp > 1 || column >= p.columns || !to)
    return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    sum += parts[warp][w][lane];
  to[column] = sum;
}

const float *floats(void *address) {
  return static_cast<const float *>(address);
}

template <class T, int kColumns>
Result<KernelParameters> bindStatistics(const LaunchView &launch, const LaunchAddresses &at) {
  const NormTrainLaunch l = *checkNormStatistics(launch, kDTypeOf<T>, kColumns);
  const bool isWide = launch.reads[3].dtype == DType::F32;
  return KernelParameters(
      StatisticsParameters<T>{.x = floats(at.reads[0]),
                              .weight = floats(at.reads[1]),
                              .bias = floats(at.reads[2]),
                              .addend = isWide ? nullptr : static_cast<const T *>(at.reads[3]),
                              .wideAddend = isWide ? floats(at.reads[3]) : nullptr,
                              .y = static_cast<T *>(at.writes[0]),
                              .mean = static_cast<float *>(at.writes[1]),
                              .rstd = static_cast<float *>(at.writes[2]),
                              .sum = static_cast<float *>(at.writes[3]),
                              .rows = l.rows,
                              .columns = int(l.columns),
                              .eps = float(launch.floats[0])});
}

template <class T, int kColumns>
Result<KernelParameters> bindBackward(const LaunchView &launch, const LaunchAddresses &at) {
  const NormTrainLaunch l = *checkNormBackward(launch, kDTypeOf<T>, kColumns);
  return KernelParameters(BackwardParameters<T>{.grad = static_cast<const T *>(at.reads[0]),
                                                .x = floats(at.reads[1]),
                                                .mean = floats(at.reads[2]),
                                                .rstd = floats(at.reads[3]),
                                                .weight = floats(at.reads[4]),
                                                .residual = floats(at.reads[5]),
                                                .dX = static_cast<float *>(at.writes[0]),
                                                .copy = static_cast<T *>(at.writes[1]),
                                                .sums = static_cast<float *>(at.writes[2]),
                                                .rows = l.rows,
                                                .columns = int(l.columns)});
}

Result<KernelParameters> bindParameters(const LaunchView &launch, const LaunchAddresses &at) {
  const NormTrainLaunch l = *checkNormParameters(launch);
  return KernelParameters(ReduceParameters{.sums = floats(at.reads[0]),
                                           .dWeight = static_cast<float *>(at.writes[0]),
                                           .dBias = static_cast<float *>(at.writes[1]),
                                           .partials = int(l.rows),
                                           .columns = int(l.columns)});
}

} // namespace

#define CGC_LAYER_NORM_TRAIN(NAME, T, COLUMNS)                                                     \
  CGC_KERNEL_OF(layer_norm_statistics_##NAME##_##COLUMNS, (normStatistics<T, COLUMNS>),            \
                (bindStatistics<T, COLUMNS>))                                                      \
  CGC_KERNEL_OF(layer_norm_backward_##NAME##_##COLUMNS, (normBackward<T, COLUMNS>),                \
                (bindBackward<T, COLUMNS>))
CGC_LAYER_NORM_TRAIN(f32, float, 1024)
CGC_LAYER_NORM_TRAIN(f16, __half, 1024)
CGC_LAYER_NORM_TRAIN(bf16, __nv_bfloat16, 1024)
CGC_LAYER_NORM_TRAIN(f32, float, 2048)
CGC_LAYER_NORM_TRAIN(f16, __half, 2048)
CGC_LAYER_NORM_TRAIN(bf16, __nv_bfloat16, 2048)
#undef CGC_LAYER_NORM_TRAIN
CGC_KERNEL_OF(layer_norm_parameters_f32, normParameters, bindParameters)

} // namespace cgc
