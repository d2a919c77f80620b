// layer_norm over the rows of a matrix, also of a sum: one warp per row, statistics in f32 in two
// passes.
#include "runtime/kernels/layer_norm.h"

#include "runtime/kernels/arguments.h"
#include "runtime/kernels/device.cuh"

namespace cgc {
namespace {

using namespace device;

/// A row of up to 32 * kCached vectors is read once and kept in registers.
constexpr int kCached = 8;

/// W is the type of weight and bias.
template <class T, class W> struct LayerNormParameters {
  const T *x, *addend;               ///< addend may be null.
  const W *weight, *bias;            ///< May be null.
  T *sum, *y;                        ///< sum is null without addend.
  int64_t rows, columns, addendRows; ///< Row r gets row r % addendRows of the addend.
  float eps;
  bool vectors; ///< Rows of 16-byte vectors.
};

/// One row, `Size` elements at a time.
template <class T, class W, int Size> struct Row {
  const LayerNormParameters<T, W> &p;
  const T *x, *addend;
  T *sum, *y;

  /// Calls `f(chunk number of this lane, first column)`.
  template <class F> __device__ void forChunks(F f) const {
    if constexpr (Size > 1) {
#pragma unroll
      for (int k = 0; k < kCached; ++k)
        if (const int column = (threadIdx.x % 32 + k * 32) * Size; column < p.columns)
          f(k, column);
    } else {
      for (int64_t column = threadIdx.x % 32; column < p.columns; column += 32)
        f(0, column);
    }
  }
  __device__ void store(T *to, const float (&values)[Size]) const {
    if constexpr (Size > 1) {
      Vector<T> out;
#pragma unroll
      for (int i = 0; i < Size; ++i)
        out.v[i] = fromFloat<T>(values[i]);
      storeVector(to, out);
    } else {
      *to = fromFloat<T>(values[0]);
    }
  }
  template <class E> __device__ void load(const E *from, float (&values)[Size]) const {
    if constexpr (Size > 1) {
      constexpr int kSize = Vector<E>::kSize;
#pragma unroll
      for (int k = 0; k < Size; k += kSize) {
        const Vector<E> in = loadVector(from + k);
#pragma unroll
        for (int i = 0; i < kSize; ++i)
          values[k + i] = toFloat(in.v[i]);
      }
    } else {
      values[0] = toFloat(*from);
    }
  }
  /// x, or the sum as it is stored, rounded.
  __device__ void element(int64_t column, float (&values)[Size]) const {
    load(x + column, values);
    if (!addend)
      return;
    float more[Size];
    load(addend + column, more);
#pragma unroll
    for (int i = 0; i < Size; ++i)
      values[i] = toFloat(fromFloat<T>(values[i] + more[i]));
  }

  __device__ void normalize() const {
    constexpr int kSlots = Size > 1 ? kCached : 1;
    float cache[kSlots][Size];
    float total = 0;
    forChunks([&](int k, int64_t column) {
      element(column, cache[k]);
#pragma unroll
      for (int i = 0; i < Size; ++i)
        total += cache[k][i];
      if (addend)
        store(sum + column, cache[k]);
    });
    const float mean = warpSum(total) / static_cast<float>(p.columns);
    float squares = 0;
    forChunks([&](int k, int64_t column) {
      if constexpr (Size == 1)
        element(column, cache[k]);
#pragma unroll
      for (int i = 0; i < Size; ++i)
        squares += (cache[k][i] - mean) * (cache[k][i] - mean);
    });
    const float scale = rsqrtf(warpSum(squares) / static_cast<float>(p.columns) + p.eps);
    forChunks([&](int k, int64_t column) {
      if constexpr (Size == 1)
        element(column, cache[k]);
      float values[Size], factor[Size];
#pragma unroll
      for (int i = 0; i < Size; ++i)
        values[i] = (cache[k][i] - mean) * scale;
      if (p.weight) {
        load(p.weight + column, factor);
#pragma unroll
        for (int i = 0; i < Size; ++i)
          values[i] *= factor[i];
      }
      if (p.bias) {
        load(p.bias + column, factor);
#pragma unroll
        for (int i = 0; i < Size; ++i)
          values[i] += factor[i];
      }
      store(y + column, values);
    });
  }
};

template <class T, class W = T>
__global__ void __launch_bounds__(kLayerNormThreads)
    layerNorm(const __grid_constant__ LayerNormParameters<T, W> p) {
  releaseSuccessor();
  waitForPredecessor();
  const int64_t row = int64_t(blockIdx.x) * kLayerNormRows + threadIdx.x / 32;
  if (row >= p.rows)
    return;
  const int64_t start = row * p.columns;
  const T *addend = p.addend ? p.addend + row % p.addendRows * p.columns : nullptr;
  T *sum = p.addend ? p.sum + start : nullptr;
  constexpr int kSize = Vector<T>::kSize;
  if (p.vectors && p.columns <= 32 * kSize * kCached)
    Row<T, W, kSize>{p, p.x + start, addend, sum, p.y + start}.normalize();
  else
    Row<T, W, 1>{p, p.x + start, addend, sum, p.y + start}.normalize();
}

template <class T, class W>
Result<KernelParameters> bind(const KernelArguments &a, const TensorView &addend,
                              std::span<const TensorView, 2> parameters, void *sum, void *y,
                              int64_t addendRows) {
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t rows = a.ints[0], columns = a.ints[1];
  const auto elements =
      rows > 0 && columns > 0 ? checkedMul(rows, columns) : std::optional<uint64_t>();
  if (!elements || rows > INT32_MAX)
    return refuseArguments("rows and columns have to be positive");
  if (!hasLaunch(a, (uint64_t(rows) + kLayerNormRows - 1) / kLayerNormRows, kLayerNormThreads))
    return refuseArguments("the grid has to be {ceil(rows / 4), 1, 1}, the block {128, 1, 1}, "
                           "without shared memory");
  if (!isDenseOf(a.reads[0], dtype, *elements))
    return refuseArguments("x has to be dense, of rows * columns elements");
  for (const TensorView &result : a.writes)
    if (!isDenseOf(result, dtype, *elements))
      return refuseArguments("the results have to be dense, of rows * columns elements");
  for (const TensorView &parameter : parameters)
    if (!isAbsentOrDenseOf(parameter, kDTypeOf<W>, columns))
      return refuseArguments(
          "weight and bias have to be dense, of as many elements as there are columns");
  bool vectors = hasVectorRows(a.reads[0], columns) && hasVectorRows(addend, columns);
  for (const auto &tensors : {std::span<const TensorView>(parameters), a.writes})
    for (const TensorView &tensor : tensors)
      vectors = vectors && hasVectorRows(tensor, columns);
  return KernelParameters(LayerNormParameters<T, W>{
      static_cast<const T *>(a.reads[0].data), static_cast<const T *>(addend.data),
      static_cast<const W *>(parameters[0].data), static_cast<const W *>(parameters[1].data),
      static_cast<T *>(sum), static_cast<T *>(y), rows, columns, addendRows,
      static_cast<float>(a.floats[0]), vectors});
}

template <class T, class W = T> Result<KernelParameters> bindPlain(const KernelArguments &a) {
  return bind<T, W>(a, {}, a.reads.subspan<1, 2>(), nullptr, a.writes[0].data, 1);
}

template <class T, class W = T> Result<KernelParameters> bindSum(const KernelArguments &a) {
  const int64_t columns = a.ints[1], addendRows = a.ints[2];
  const auto elements =
      columns > 0 && addendRows > 0 ? checkedMul(addendRows, columns) : std::optional<uint64_t>();
  if (!elements || !isDenseOf(a.reads[1], kDTypeOf<T>, *elements))
    return refuseArguments("addend has to be dense, of addend_rows * columns elements");
  return bind<T, W>(a, a.reads[1], a.reads.subspan<2, 2>(), a.writes[0].data, a.writes[1].data,
                    addendRows);
}

} // namespace

CGC_FLOAT_KERNELS(layer_norm, layerNorm, bindPlain)
CGC_FLOAT_KERNELS(add_layer_norm, layerNorm, bindSum)
CGC_KERNEL_OF(layer_norm_by_f32_f16, (layerNorm<__half, float>), (bindPlain<__half, float>))
CGC_KERNEL_OF(layer_norm_by_f32_bf16, (layerNorm<__nv_bfloat16, float>),
              (bindPlain<__nv_bfloat16, float>))
CGC_KERNEL_OF(add_layer_norm_by_f32_f16, (layerNorm<__half, float>), (bindSum<__half, float>))
CGC_KERNEL_OF(add_layer_norm_by_f32_bf16, (layerNorm<__nv_bfloat16, float>),
              (bindSum<__nv_bfloat16, float>))

} // namespace cgc
