// layer_norm_*, add_layer_norm_* and layer_norm_chain_*: one warp for each row, or for several
// short rows; mean and variance in f32 in two passes.
#include "runtime/kernels/rowwise/layer_norm.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/rowwise/row_statistics.cuh"

namespace cgc {
namespace {

using namespace device;

/// The most elements of a row that a lane keeps in registers.
constexpr int kCached = kLayerNormCached / 32;

/// The loads of short rows that a lane has in flight.
constexpr int kLoadsAhead = 4;

/// What a kernel computes of its rows: layer_norm or add_layer_norm, as there is an addend; or
/// layer_norm_chain.
enum class Form { Norm, Sum, Chain };

/// T is the type of x, addend, sum and y; W that of weight and bias.
template <class T, class W> struct LayerNormParameters {
  const T *x, *addend;               ///< addend may be null.
  const W *weight, *bias;            ///< May be null.
  T *sum, *y;                        ///< sum is null without addend.
  RowStatistics *statistics;         ///< Of y, [rows, columns / 64]; null if not requested.
  int64_t rows, columns, addendRows; ///< Row r gets row r % addendRows of the addend.
  float eps;
  bool vectors;               ///< All rows begin and end at multiples of 16 bytes.
  bool parametersAreConstant; ///< Nothing writes weights and biases while the plan runs.
  // Of layer_norm_chain: the second norm, and what follows the last one.
  const W *nextWeight, *nextBias; ///< May be null.
  float nextEps;
  bool isTwice;
  Activation activation;
};

/// Loads `Size` elements as floats, with 16-byte loads if Size allows them.
template <int Size, class T> __device__ void loadChunk(const T *from, float (&values)[Size]) {
  constexpr int kWidth = Size < Vector<T>::kSize ? Size : Vector<T>::kSize;
#pragma unroll
  for (int k = 0; k < Size; k += kWidth) {
    float part[kWidth];
    loadFloats<kWidth>(from + k, part);
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      values[k + i] = part[i];
  }
}

/// 16 bytes of a row, as they are loaded. A `Vector<T>` would be taken apart into elements, and so
/// waited for, at once: __half and __nv_bfloat16 have copy constructors.
template <class T> __device__ uint4 loadBits(const T *from) {
  return *reinterpret_cast<const uint4 *>(from);
}
template <class T> __device__ void toFloats(const uint4 &bits, float (&values)[Vector<T>::kSize]) {
#pragma unroll
  for (int i = 0; i < Vector<T>::kSize; ++i)
    values[i] = toFloat(reinterpret_cast<const T *>(&bits)[i]);
}

/// Stores `Size` elements, 16 bytes of 16-bit ones as one word: the compiler may store a `Pack` of
/// them element by element.
template <int Size, class T> __device__ void storeChunk(T *to, const float (&values)[Size]) {
  if constexpr (sizeof(T) == 2 && Size == 8)
    *reinterpret_cast<uint4 *>(to) = {
        packPair<T>(values[0], values[1]), packPair<T>(values[2], values[3]),
        packPair<T>(values[4], values[5]), packPair<T>(values[6], values[7])};
  else
    storeFloats<Size>(to, values);
}

/// Adds the elements to `total`, one after the other.
template <int Size> __device__ void addSum(float &total, const float (&values)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    total += values[i];
}
/// Adds the squares of the elements' distances to the mean to `squares`, one after the other.
template <int Size>
__device__ void addSquares(float &squares, const float (&values)[Size], float mean) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    squares += (values[i] - mean) * (values[i] - mean);
}
/// Turns values of x into those of the sum of x and the addend `more`, rounded to T.
template <class T, int Size>
__device__ void addRounded(float (&values)[Size], const float (&more)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    values[i] = toFloat(fromFloat<T>(values[i] + more[i]));
}
/// Rounds the values to T.
template <class T, int Size> __device__ void roundTo(float (&values)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    values[i] = toFloat(fromFloat<T>(values[i]));
}
/// Turns values of norms into those of the activation, rounded to T in between. The activation is
/// chosen once for all chunks of them.
template <class T, int Chunks, int Size>
__device__ __forceinline__ void activate(Activation activation, float (&values)[Chunks][Size]) {
  if (activation == Activation::None)
    return;
  withActivation<T>(activation, [&](auto f) {
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      if constexpr (sizeof(T) == 2 && Size % 2 == 0) {
#pragma unroll
        for (int i = 0; i < Size; i += 2) {
          const float2 pair =
              device::toFloats(activatePair<T>(f, fromFloats<T>(values[k][i], values[k][i + 1])));
          values[k][i] = pair.x;
          values[k][i + 1] = pair.y;
        }
      } else {
        roundTo<T>(values[k]);
#pragma unroll
        for (int i = 0; i < Size; ++i)
          values[k][i] = f(values[k][i]);
      }
    }
  });
}
/// Turns values of x into those of y. `factor` and `summand` are parts of weight and bias.
template <int Size>
__device__ void normalize(float (&values)[Size], float mean, float scale,
                          const float (&factor)[Size], const float (&summand)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    values[i] = (values[i] - mean) * scale * factor[i] + summand[i];
}

/// The addresses of one row.
template <class T> struct RowOf {
  const T *x, *addend;
  T *sum, *y;

  template <class W>
  __device__ RowOf(const LayerNormParameters<T, W> &p, int64_t row)
      : x(p.x + row * p.columns),
        addend(p.addend ? p.addend + row % p.addendRows * p.columns : nullptr),
        sum(p.addend ? p.sum + row * p.columns : nullptr), y(p.y + row * p.columns) {}

  /// Loads x, or the sum rounded to T, as it is stored.
  template <int Size> __device__ void load(int64_t column, float (&values)[Size]) const {
    loadChunk(x + column, values);
    add(column, values);
  }
  /// Turns values of x into those of the sum rounded to T.
  template <int Size> __device__ void add(int64_t column, float (&values)[Size]) const {
    if (!addend)
      return;
    float more[Size];
    loadChunk(addend + column, more);
    addRounded<T>(values, more);
  }
};

/// Normalizes rows that fit into registers as whole vectors, with weights and biases in shared
/// memory.
template <bool Chains, class T, class W>
__device__ void normalizeCached(const LayerNormParameters<T, W> &p) {
  constexpr int kSize = Vector<T>::kSize, kChunks = kCached / kSize;
  const auto columnOf = [](int k) -> int { return (threadIdx.x % 32 + k * 32) * kSize; };
  const auto forChunks = [&](auto f) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
      if (const int column = columnOf(k); column < p.columns)
        f(k, column);
  };
  if (!p.parametersAreConstant)
    griddepWait();
  // Of each norm.
  __shared__ alignas(16) float weight[Chains ? 2 : 1][kLayerNormCached],
      bias[Chains ? 2 : 1][kLayerNormCached];
  const auto copyParameters = [&](int norm, const W *from, const W *fromBias) {
    for (int column = threadIdx.x; column < p.columns; column += kLayerNormThreads) {
      weight[norm][column] = from ? toFloat(from[column]) : 1.0f;
      bias[norm][column] = fromBias ? toFloat(fromBias[column]) : 0.0f;
    }
  };
  copyParameters(0, p.weight, p.bias);
  if (Chains && p.isTwice)
    copyParameters(1, p.nextWeight, p.nextBias);
  __syncthreads();
  griddepWait();
  const int64_t step = int64_t(gridDim.x) * kLayerNormRows;
  int64_t row = int64_t(blockIdx.x) * kLayerNormRows + threadIdx.x / 32;
  // Loads the next row while this one is normalized.
  uint4 next[kChunks];
  const auto fetch = [&](int64_t from) {
    if (from < p.rows)
      forChunks([&](int k, int column) { next[k] = loadBits(p.x + from * p.columns + column); });
  };
  fetch(row);
  for (; row < p.rows; row += step) {
    const RowOf<T> at(p, row);
    float values[kChunks][kSize], total = 0;
    forChunks([&](int k, int column) {
      toFloats<T>(next[k], values[k]);
      at.add(column, values[k]);
    });
    fetch(row + step);
    forChunks([&](int k, int column) {
      addSum(total, values[k]);
      if (at.sum)
        storeChunk(at.sum + column, values[k]);
    });
    // Normalizes the row, whose elements add up to `sum` in this lane, and calls `f` for each
    // chunk.
    const auto normalizeRow = [&](int norm, float sum, float eps, auto f) {
      const float mean = warpSum(sum) / static_cast<float>(p.columns);
      float squares = 0;
      forChunks([&](int k, int) { addSquares(squares, values[k], mean); });
      const float scale = rsqrtf(warpSum(squares) / static_cast<float>(p.columns) + eps);
      forChunks([&](int k, int column) {
        float factor[kSize], summand[kSize];
        loadChunk(weight[norm] + column, factor);
        loadChunk(bias[norm] + column, summand);
        normalize(values[k], mean, scale, factor, summand);
        f(k, column);
      });
    };
    const auto store = [&](int k, int column) { storeChunk(at.y + column, values[k]); };
    if constexpr (Chains) {
      if (p.isTwice) {
        float nextTotal = 0;
        normalizeRow(0, total, p.eps, [&](int k, int) {
          roundTo<T>(values[k]);
          addSum(nextTotal, values[k]);
        });
        normalizeRow(1, nextTotal, p.nextEps, [](int, int) {});
      } else {
        normalizeRow(0, total, p.eps, [](int, int) {});
      }
      activate<T>(p.activation, values);
      forChunks(store);
    } else {
      normalizeRow(0, total, p.eps, store);
    }
    // All lanes of a warp call storeRowStatistics().
    if constexpr (kHasRowStatistics<T> && !Chains)
      if (p.statistics)
#pragma unroll
        for (int k = 0; k < kChunks; ++k)
          if (k * 32 * kSize < p.columns) {
            const int column = columnOf(k);
            storeRowStatistics<T>(p.statistics + (row * p.columns + column) / kStatisticsGroup,
                                  column < p.columns, values[k]);
          }
  }
}

/// The sum of `value` over each `Lanes` consecutive lanes, in each of them. All lanes of a warp
/// call it.
template <int Lanes> __device__ float sumOfLanes(float value) {
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// Normalizes rows of at most `Lanes` vectors: each `Lanes` consecutive lanes of a warp take a row
/// of their own, each lane a vector of it. Weight and bias of the vector stay in registers. The
/// code of a row is there once for each load in flight, that of activations once.
template <int Lanes, Form F, class T, class W>
__device__ void normalizeShort(const LayerNormParameters<T, W> &p) {
  constexpr bool Adds = F == Form::Sum;
  constexpr int kSize = Vector<T>::kSize, kAhead = F == Form::Norm ? kLoadsAhead : kLoadsAhead / 2;
  constexpr int kBatch = F == Form::Chain ? kAhead : 1; // Rows whose results are stored together.
  constexpr int kRows = 32 / Lanes;                     // Rows of a warp at a time.
  const int column = threadIdx.x % Lanes * kSize;
  const bool inside = column < p.columns;
  // The first row of the warp. It is the same in all lanes, so that they leave the loop together.
  int64_t first = (int64_t(blockIdx.x) * kLayerNormRows + threadIdx.x / 32) * kRows;
  const int64_t row = first + threadIdx.x % 32 / Lanes;
  const int64_t step = int64_t(gridDim.x) * kLayerNormRows * kRows;
  // Positions in x, sum and y. Those of lanes that are not inside are behind the last element.
  const int64_t elements = p.rows * p.columns, stride = step * p.columns;
  int64_t at = inside ? row * p.columns + column : elements, atAhead = at;
  int64_t addendRow = 0, addendStep = 0;
  if constexpr (Adds) {
    addendRow = row % p.addendRows;
    addendStep = step % p.addendRows;
  }
  if (!p.parametersAreConstant)
    griddepWait();
  float factor[kSize], summand[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    factor[i] = 1.0f;
    summand[i] = 0.0f;
  }
  if (p.weight && inside)
    loadChunk(p.weight + column, factor);
  if (p.bias && inside)
    loadChunk(p.bias + column, summand);
  griddepWait();
  // Lanes that are not inside keep zeros, which add nothing to the sum of their row.
  uint4 next[kAhead] = {}, nextAddend[kAhead] = {};
  const auto fetch = [&](int k) {
    if (atAhead < elements) {
      next[k] = loadBits(p.x + atAhead);
      if constexpr (Adds)
        nextAddend[k] = loadBits(p.addend + addendRow * p.columns + column);
    }
    atAhead += stride;
    if constexpr (Adds) {
      addendRow += addendStep;
      if (addendRow >= p.addendRows)
        addendRow -= p.addendRows;
    }
  };
#pragma unroll
  for (int k = 0; k < kAhead; ++k)
    fetch(k);
  const float columns = static_cast<float>(p.columns), inverse = 1.0f / columns;
#pragma unroll 1
  while (true)
#pragma unroll
    for (int k = 0; k < kAhead; k += kBatch, first += kBatch * step) {
      if (first >= p.rows)
        return;
      float values[kBatch][kSize];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        float total = 0, squares = 0;
        toFloats<T>(next[k + i], values[i]);
        if constexpr (Adds) {
          float more[kSize];
          toFloats<T>(nextAddend[k], more);
          addRounded<T>(values[i], more);
        }
        fetch(k + i);
        if (Adds && at < elements)
          storeChunk(p.sum + at, values[i]);
        addSum(total, values[i]);
        total = sumOfLanes<Lanes>(total);
        // The correctly rounded total / columns, without the branch of a division.
        const float quotient = total * inverse;
        const float mean = fmaf(fmaf(-quotient, columns, total), inverse, quotient);
        addSquares(squares, values[i], mean);
        squares = sumOfLanes<Lanes>(inside ? squares : 0.0f);
        const float scale = rsqrtf(squares * inverse + p.eps);
        normalize(values[i], mean, scale, factor, summand);
      }
      if constexpr (F == Form::Chain)
        activate<T>(p.activation, values);
#pragma unroll
      for (int i = 0; i < kBatch; ++i, at += stride) {
        const bool stores = at < elements;
        if (stores)
          storeChunk(p.y + at, values[i]);
        // All lanes of a warp call storeRowStatistics().
        if constexpr (kHasRowStatistics<T> && F == Form::Norm)
          if (p.statistics)
            storeRowStatistics<T>(p.statistics + at / kStatisticsGroup, stores, values[i]);
      }
    }
}

/// Normalizes short rows with or without an addend, or as a chain of one norm.
template <int Lanes, bool Chains, class T, class W>
__device__ void normalizeShort(const LayerNormParameters<T, W> &p) {
  if constexpr (Chains)
    normalizeShort<Lanes, Form::Chain>(p);
  else if (p.addend)
    normalizeShort<Lanes, Form::Sum>(p);
  else
    normalizeShort<Lanes, Form::Norm>(p);
}

/// Normalizes rows of any length in chunks of Size elements. Reads each row three times.
template <int Size, bool Chains, class T, class W>
__device__ void normalizeStreamed(const LayerNormParameters<T, W> &p) {
  griddepWait();
  const auto forChunks = [&](auto f) {
    for (int64_t column = threadIdx.x % 32 * Size; column < p.columns; column += 32 * Size)
      f(column);
  };
  for (int64_t row = int64_t(blockIdx.x) * kLayerNormRows + threadIdx.x / 32; row < p.rows;
       row += int64_t(gridDim.x) * kLayerNormRows) {
    const RowOf<T> at(p, row);
    float chunks[1][Size], total = 0, squares = 0;
    float(&values)[Size] = chunks[0];
    forChunks([&](int64_t column) {
      at.load(column, values);
      addSum(total, values);
    });
    const float mean = warpSum(total) / static_cast<float>(p.columns);
    forChunks([&](int64_t column) {
      at.load(column, values);
      addSquares(squares, values, mean);
    });
    const float scale = rsqrtf(warpSum(squares) / static_cast<float>(p.columns) + p.eps);
    forChunks([&](int64_t column) {
      at.load(column, values);
      float factor[Size];
      if (at.sum) // `sum` may be x, so it is written after the last load.
        storeChunk(at.sum + column, values);
#pragma unroll
      for (int i = 0; i < Size; ++i)
        values[i] = (values[i] - mean) * scale;
      if (p.weight) {
        loadChunk(p.weight + column, factor);
#pragma unroll
        for (int i = 0; i < Size; ++i)
          values[i] *= factor[i];
      }
      if (p.bias) {
        loadChunk(p.bias + column, factor);
#pragma unroll
        for (int i = 0; i < Size; ++i)
          values[i] += factor[i];
      }
      if constexpr (Chains)
        activate<T>(p.activation, chunks);
      storeChunk(at.y + column, values);
    });
  }
}

template <bool Chains, class T, class W>
__device__ __forceinline__ void normalizeRows(const LayerNormParameters<T, W> &p) {
  griddepLaunchDependents();
  constexpr int kSize = Vector<T>::kSize;
  if (!p.vectors)
    normalizeStreamed<1, Chains>(p);
  else if (Chains && p.isTwice)
    normalizeCached<Chains>(p);
  else if (p.columns <= 8 * kSize)
    normalizeShort<8, Chains>(p);
  else if (p.columns <= 16 * kSize)
    normalizeShort<16, Chains>(p);
  else if (p.columns <= 32 * kSize)
    normalizeShort<32, Chains>(p);
  else if (p.columns <= kLayerNormCached)
    normalizeCached<Chains>(p);
  else
    normalizeStreamed<kSize, Chains>(p);
}

template <class T, class W = T>
__global__ void __launch_bounds__(kLayerNormThreads, 5)
    layerNorm(const __grid_constant__ LayerNormParameters<T, W> p) {
  normalizeRows<false>(p);
}
template <class T, class W = T>
__global__ void __launch_bounds__(kLayerNormThreads, 5)
    layerNormChain(const __grid_constant__ LayerNormParameters<T, W> p) {
  normalizeRows<true>(p);
}

/// What the kernels share. The operands from at.reads[firstParameter] on are weights and biases.
template <class T, class W>
LayerNormParameters<T, W>
parametersOf(const LaunchView &launch, const LaunchAddresses &at, const LayerNormLaunch &l,
             const void *addend, size_t firstParameter, void *sum, void *y, void *statistics) {
  bool constant = true;
  for (size_t i = firstParameter; i < at.reads.size(); ++i)
    constant &= !at.reads[i] || at.isConstant(i);
  return {static_cast<const T *>(at.reads[0]),
          static_cast<const T *>(addend),
          static_cast<const W *>(at.reads[firstParameter]),
          static_cast<const W *>(at.reads[firstParameter + 1]),
          static_cast<T *>(sum),
          static_cast<T *>(y),
          static_cast<RowStatistics *>(statistics),
          l.rows,
          l.columns,
          l.addendRows,
          static_cast<float>(launch.floats[0]),
          l.vectors,
          constant};
}

template <class T, class W = T>
Result<KernelParameters> bindPlain(const LaunchView &launch, const LaunchAddresses &at) {
  const LayerNormLaunch l = *checkLayerNorm(launch, kDTypeOf<T>, kDTypeOf<W>);
  return KernelParameters(parametersOf<T, W>(launch, at, l, /*addend=*/nullptr, 1, /*sum=*/nullptr,
                                             at.writes[0],
                                             kHasRowStatistics<T> ? at.writes[1] : nullptr));
}

template <class T, class W = T>
Result<KernelParameters> bindSum(const LaunchView &launch, const LaunchAddresses &at) {
  const LayerNormLaunch l = *checkAddLayerNorm(launch, kDTypeOf<T>, kDTypeOf<W>);
  return KernelParameters(parametersOf<T, W>(launch, at, l, at.reads[1], 2, at.writes[0],
                                             at.writes[1], /*statistics=*/nullptr));
}

template <class T, class W = T>
Result<KernelParameters> bindChain(const LaunchView &launch, const LaunchAddresses &at) {
  const LayerNormChainLaunch l = *checkLayerNormChain(launch, kDTypeOf<T>, kDTypeOf<W>);
  auto p = parametersOf<T, W>(launch, at, l, /*addend=*/nullptr, 1, /*sum=*/nullptr, at.writes[0],
                              /*statistics=*/nullptr);
  p.nextWeight = static_cast<const W *>(at.reads[3]);
  p.nextBias = static_cast<const W *>(at.reads[4]);
  p.nextEps = static_cast<float>(launch.floats[1]);
  p.isTwice = l.isTwice;
  p.activation = l.activation;
  return KernelParameters(p);
}

} // namespace

CGC_FLOAT_KERNELS(layer_norm, layerNorm, bindPlain)
CGC_FLOAT_KERNELS(add_layer_norm, layerNorm, bindSum)
CGC_FLOAT_KERNELS(layer_norm_chain, layerNormChain, bindChain)
CGC_KERNEL_OF(layer_norm_by_f32_f16, (layerNorm<__half, float>), (bindPlain<__half, float>))
CGC_KERNEL_OF(layer_norm_by_f32_bf16, (layerNorm<__nv_bfloat16, float>),
              (bindPlain<__nv_bfloat16, float>))
CGC_KERNEL_OF(add_layer_norm_by_f32_f16, (layerNorm<__half, float>), (bindSum<__half, float>))
CGC_KERNEL_OF(add_layer_norm_by_f32_bf16, (layerNorm<__nv_bfloat16, float>),
              (bindSum<__nv_bfloat16, float>))
CGC_KERNEL_OF(layer_norm_chain_by_f32_f16, (layerNormChain<__half, float>),
              (bindChain<__half, float>))
CGC_KERNEL_OF(layer_norm_chain_by_f32_bf16, (layerNormChain<__nv_bfloat16, float>),
              (bindChain<__nv_bfloat16, float>))

} // namespace cgc
