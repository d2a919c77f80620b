// layer_norm over the rows of a matrix: one block per row, statistics in f32 in two passes.
#include "runtime/kernels/layer_norm.h"

#include "runtime/base/checked.h"
#include "runtime/kernels/kernel_table.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cgc {
namespace {

constexpr int kThreads = kLayerNormThreads;
constexpr int kWarps = kThreads / 32;
/// A row of up to kThreads * kCached elements is read once and kept in registers.
constexpr int kCached = 8;

__device__ float toFloat(float v) {
  return v;
}
__device__ float toFloat(__half v) {
  return __half2float(v);
}
__device__ float toFloat(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
template <class T> __device__ T fromFloat(float v);
template <> __device__ float fromFloat<float>(float v) {
  return v;
}
template <> __device__ __half fromFloat<__half>(float v) {
  return __float2half_rn(v);
}
template <> __device__ __nv_bfloat16 fromFloat<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

/// The sum of `value` over the block, in every thread. `partial` may be used again after the next
/// __syncthreads().
__device__ float blockSum(float value, float (&partial)[kWarps]) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp)
    sum += partial[warp];
  return sum;
}

/// Calls `f(k, column)` for this thread's columns; `k` is a constant after unrolling if Cached.
template <bool Cached, class F> __device__ void forColumns(int64_t columns, F f) {
  if constexpr (Cached) {
#pragma unroll
    for (int k = 0; k < kCached; ++k)
      if (const int column = threadIdx.x + k * kThreads; column < columns)
        f(k, column);
  } else {
    for (int64_t column = threadIdx.x; column < columns; column += kThreads)
      f(0, column);
  }
}

template <bool Cached, class T>
__device__ void normalizeRow(const T *x, const T *weight, const T *bias, T *y, int64_t columns,
                             float eps) {
  __shared__ float partial[2][kWarps];
  float values[kCached] = {};
  const auto value = [&](int k, int64_t column) { return Cached ? values[k] : toFloat(x[column]); };
  float sum = 0;
  forColumns<Cached>(columns, [&](int k, int64_t column) {
    const float v = toFloat(x[column]);
    if (Cached)
      values[k] = v;
    sum += v;
  });
  const float mean = blockSum(sum, partial[0]) / static_cast<float>(columns);
  float squares = 0;
  forColumns<Cached>(columns, [&](int k, int64_t column) {
    const float d = value(k, column) - mean;
    squares += d * d;
  });
  const float variance = blockSum(squares, partial[1]) / static_cast<float>(columns);
  const float scale = rsqrtf(variance + eps);
  forColumns<Cached>(columns, [&](int k, int64_t column) {
    const float v = (value(k, column) - mean) * scale;
    const float w = weight ? toFloat(weight[column]) : 1.0f;
    const float b = bias ? toFloat(bias[column]) : 0.0f;
    y[column] = fromFloat<T>(v * w + b);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    layerNorm(const T *x, const T *weight, const T *bias, T *y, int64_t /*rows*/, int64_t columns,
              double eps) {
  const int64_t start = int64_t(blockIdx.x) * columns;
  if (columns <= kThreads * kCached)
    normalizeRow<true>(x + start, weight, bias, y + start, columns, static_cast<float>(eps));
  else
    normalizeRow<false>(x + start, weight, bias, y + start, columns, static_cast<float>(eps));
}

bool fits(const TensorView &tensor, DType dtype, uint64_t elements) {
  uint64_t count = 1;
  for (int64_t size : tensor.sizes)
    count *= static_cast<uint64_t>(size); // A plan's tensors were checked against overflow.
  return tensor.data && tensor.dtype == dtype && tensor.strides.empty() && count == elements;
}

std::string_view check(const KernelArguments &a, DType dtype) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  const auto elements =
      rows > 0 && columns > 0 ? checkedMul(rows, columns) : std::optional<uint64_t>();
  if (!elements)
    return "rows and columns have to be positive";
  if (a.grid[0] != uint64_t(rows) || a.grid[1] != 1 || a.grid[2] != 1 ||
      a.block[0] != kLayerNormThreads || a.block[1] != 1 || a.block[2] != 1 || a.sharedBytes != 0)
    return "the grid has to be {rows, 1, 1}, the block {256, 1, 1}, without shared memory";
  if (!fits(a.reads[0], dtype, *elements) || !fits(a.writes[0], dtype, *elements))
    return "x and y have to be dense, of rows * columns elements";
  for (const TensorView &parameter : a.reads.subspan(1))
    if (parameter.data && !fits(parameter, dtype, columns))
      return "weight and bias have to be dense, of as many elements as there are columns";
  return {};
}

} // namespace

#define CGC_LAYER_NORM(NAME, TYPE, DTYPE)                                                          \
  const void *NAME##Function() {                                                                   \
    return reinterpret_cast<const void *>(&layerNorm<TYPE>);                                       \
  }                                                                                                \
  std::string_view NAME##Check(const KernelArguments &arguments) {                                 \
    return check(arguments, DTYPE);                                                                \
  }
CGC_LAYER_NORM(layer_norm_f32, float, DType::F32)
CGC_LAYER_NORM(layer_norm_f16, __half, DType::F16)
CGC_LAYER_NORM(layer_norm_bf16, __nv_bfloat16, DType::BF16)
#undef CGC_LAYER_NORM

} // namespace cgc
