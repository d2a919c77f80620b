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
template <class T> __device__ void storeBits(T *to, const uint4 &bits) {
  *reinterpret_cast<uint4 *>(to) = bits;
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
/// Turns the elements into their distances to the mean, and adds the squares of these to `squares`,
/// one after the other.
template <int Size> __device__ void addSquares(float &squares, float (&values)[Size], float mean) {
#pragma unroll
  for (int i = 0; i < Size; ++i) {
    values[i] -= mean;
    squares += values[i] * values[i];
  }
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
/// The same of vectors, as the bits to store.
template <class T, int Chunks, int Size>
__device__ __forceinline__ void activate(Activation activation, const float (&values)[Chunks][Size],
                                         uint4 (&bits)[Chunks]) {
  withActivation<T>(activation, [&](auto f) {
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      if constexpr (sizeof(T) == 2) {
        Pairs<T> pairs;
#pragma unroll
        for (int i = 0; i < Size; i += 2)
          pairs[i / 2] = activatePair<T>(f, fromFloats<T>(values[k][i], values[k][i + 1]));
        bits[k] = pairs.bits;
      } else {
        bits[k] = {__float_as_uint(f(values[k][0])), __float_as_uint(f(values[k][1])),
                   __float_as_uint(f(values[k][2])), __float_as_uint(f(values[k][3]))};
      }
    }
  });
}
/// The correctly rounded total / columns of a finite total, without the branch of a division.
__device__ inline float meanOf(float total, float columns, float inverse) {
  const float quotient = total * inverse;
  return fmaf(fmaf(-quotient, columns, total), inverse, quotient);
}
/// Turns distances to the mean into values of y. `factor` and `summand` are parts of weight and
/// bias.
template <int Size>
__device__ void normalize(float (&values)[Size], float scale, const float (&factor)[Size],
                          const float (&summand)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i)
    values[i] = values[i] * scale * factor[i] + summand[i];
}

/// Weight and bias of a norm in shared memory. The lanes that load four numbers each at a time have
/// them side by side: a lane with eight consecutive columns would share its banks with another.
struct CachedParameters {
  alignas(16) float weight[kLayerNormCached];
  alignas(16) float bias[kLayerNormCached];

  /// The place of a column in rows whose lanes have vectors of `Size` columns.
  template <int Size> static __device__ int placeOf(int column) {
    const int vector = column / Size;
    return (vector / 32 * (Size / 4) + column % Size / 4) * 128 + vector % 32 * 4 + column % 4;
  }
  /// Loads what belongs to vector `k` of this lane.
  template <int Size> static __device__ void load(const float *from, int k, float (&values)[Size]) {
#pragma unroll
    for (int i = 0; i < Size; i += 4) {
      const auto part =
          *reinterpret_cast<const float4 *>(from + (k * Size + i) * 32 + threadIdx.x % 32 * 4);
      values[i] = part.x;
      values[i + 1] = part.y;
      values[i + 2] = part.z;
      values[i + 3] = part.w;
    }
  }
};

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
/// memory. With `IsFull` each lane has `Chunks` vectors of a row, so that no code depends on the
/// columns; otherwise at most as many.
template <int Chunks, bool IsFull, bool Chains, class T, class W>
__device__ void normalizeCached(const LayerNormParameters<T, W> &p,
                                CachedParameters (&parameters)[Chains ? 2 : 1]) {
  constexpr int kSize = Vector<T>::kSize;
  constexpr bool kActivates = Chains && !IsFull;
  const int columns = IsFull ? Chunks * 32 * kSize : int(p.columns);
  const auto columnOf = [](int k) -> int { return (threadIdx.x % 32 + k * 32) * kSize; };
  const auto forChunks = [&](auto f) {
#pragma unroll
    for (int k = 0; k < Chunks; ++k)
      if (const int column = columnOf(k); IsFull || column < columns)
        f(k, column);
  };
  if (!p.parametersAreConstant)
    griddepWait();
  const auto copyParameters = [&](int norm, const W *weight, const W *bias) {
    for (int column = threadIdx.x; column < columns; column += kLayerNormThreads) {
      const int at = CachedParameters::placeOf<kSize>(column);
      parameters[norm].weight[at] = weight ? toFloat(weight[column]) : 1.0f;
      parameters[norm].bias[at] = bias ? toFloat(bias[column]) : 0.0f;
    }
  };
  copyParameters(0, p.weight, p.bias);
  if (Chains && (IsFull || p.isTwice))
    copyParameters(1, p.nextWeight, p.nextBias);
  __syncthreads();
  griddepWait();
  const int64_t step = int64_t(gridDim.x) * kLayerNormRows;
  int64_t row = int64_t(blockIdx.x) * kLayerNormRows + threadIdx.x / 32;
  // Loads the next row while this one is normalized.
  uint4 next[Chunks];
  const auto fetch = [&](int64_t from) {
    if (from < p.rows)
      forChunks([&](int k, int column) { next[k] = loadBits(p.x + from * columns + column); });
  };
  fetch(row);
  const float inverse = 1.0f / static_cast<float>(columns);
  for (; row < p.rows; row += step) {
    const RowOf<T> at(p, row);
    float values[Chunks][kSize], total = 0;
    forChunks([&](int k, int column) {
      toFloats<T>(next[k], values[k]);
      if constexpr (!IsFull)
        at.add(column, values[k]);
    });
    fetch(row + step);
    forChunks([&](int k, int column) {
      addSum(total, values[k]);
      if (!IsFull && at.sum)
        storeChunk(at.sum + column, values[k]);
    });
    // Normalizes the row, whose elements add up to `sum` in this lane, and calls `f` for each
    // chunk.
    const auto normalizeRow = [&](int norm, float sum, float eps, auto f) {
      const float mean = meanOf(warpSum(sum), static_cast<float>(columns), inverse);
      float squares = 0;
      forChunks([&](int k, int) { addSquares(squares, values[k], mean); });
      const float scale = rsqrtf(warpSum(squares) * inverse + eps);
      forChunks([&](int k, int column) {
        float factor[kSize], summand[kSize];
        CachedParameters::load(parameters[norm].weight, k, factor);
        CachedParameters::load(parameters[norm].bias, k, summand);
        normalize(values[k], scale, factor, summand);
        f(k, column);
      });
    };
    const auto store = [&](int k, int column) { storeChunk(at.y + column, values[k]); };
    if constexpr (Chains) {
      if (IsFull || p.isTwice) {
        float nextTotal = 0;
        normalizeRow(0, total, p.eps, [&](int k, int) {
          roundTo<T>(values[k]);
          addSum(nextTotal, values[k]);
        });
        normalizeRow(1, nextTotal, p.nextEps, [](int, int) {});
      } else {
        normalizeRow(0, total, p.eps, [](int, int) {});
      }
      if constexpr (kActivates) {
        uint4 bits[Chunks];
        activate<T>(p.activation, values, bits);
        forChunks([&](int k, int column) { storeBits(at.y + column, bits[k]); });
      } else {
        forChunks(store);
      }
    } else {
      normalizeRow(0, total, p.eps, store);
    }
    // All lanes of a warp call storeRowStatistics().
    if constexpr (kHasRowStatistics<T> && !Chains)
      if (p.statistics)
#pragma unroll
        for (int k = 0; k < Chunks; ++k)
          if (k * 32 * kSize < columns) {
            const int column = columnOf(k);
            storeRowStatistics<T>(p.statistics + (row * columns + column) / kStatisticsGroup,
                                  column < columns, values[k]);
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
/// code of a row is there once for each load in flight, that of activations once for two rows.
template <int Lanes, Form F, class T, class W>
__device__ void normalizeShort(const LayerNormParameters<T, W> &p) {
  constexpr bool Adds = F == Form::Sum;
  constexpr int kSize = Vector<T>::kSize, kAhead = Adds ? kLoadsAhead / 2 : kLoadsAhead;
  constexpr int kBatch = F == Form::Chain ? 2 : 1; // Rows whose results are stored together.
  constexpr int kRows = 32 / Lanes;                // Rows of a warp at a time.
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
  // Computes the batch whose first row is in next[k].
  const auto compute = [&](int k) {
    float values[kBatch][kSize];
    // All rows of the batch are taken out of their registers before these are loaded again. The
    // compiler would otherwise load others, and wait for them, in order to copy.
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      toFloats<T>(next[k + i], values[i]);
      if constexpr (Adds) {
        float more[kSize];
        toFloats<T>(nextAddend[k], more);
        addRounded<T>(values[i], more);
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      fetch(k + i);
    if (Adds && at < elements)
      storeChunk(p.sum + at, values[0]);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float total = 0, squares = 0;
      addSum(total, values[i]);
      total = sumOfLanes<Lanes>(total);
      addSquares(squares, values[i], meanOf(total, columns, inverse));
      squares = sumOfLanes<Lanes>(inside ? squares : 0.0f);
      const float scale = rsqrtf(squares * inverse + p.eps);
      normalize(values[i], scale, factor, summand);
    }
    uint4 bits[kBatch];
    if constexpr (F == Form::Chain)
      activate<T>(p.activation, values, bits);
#pragma unroll
    for (int i = 0; i < kBatch; ++i, at += stride) {
      const bool stores = at < elements;
      if (stores) {
        if constexpr (F == Form::Chain)
          storeBits(p.y + at, bits[i]);
        else
          storeChunk(p.y + at, values[i]);
      }
      // All lanes of a warp call storeRowStatistics().
      if constexpr (kHasRowStatistics<T> && F == Form::Norm)
        if (p.statistics)
          storeRowStatistics<T>(p.statistics + at / kStatisticsGroup, stores, values[i]);
    }
    first += kBatch * step;
  };
  // The compiler does not unroll a loop over all batches of a chain: `next` would be in memory.
#pragma unroll 1
  while (first < p.rows) {
    compute(0);
#pragma unroll
    for (int k = kBatch; k < kAhead; k += kBatch) {
      if (first >= p.rows)
        return;
      compute(k);
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

/// Normalizes rows that fit into registers as whole vectors.
template <bool Chains, class T, class W>
__device__ void normalizeCached(const LayerNormParameters<T, W> &p) {
  __shared__ CachedParameters parameters[Chains ? 2 : 1];
  constexpr int kLanes = 32 * Vector<T>::kSize;
  // Common rows in 16 bits have code of their own.
  if constexpr (sizeof(T) == 2)
    if (Chains ? p.isTwice && p.activation == Activation::None : !p.addend)
      switch (p.columns) {
      case 2 * kLanes:
        return normalizeCached<2, /*IsFull=*/true, Chains>(p, parameters);
      case 3 * kLanes:
        return normalizeCached<3, /*IsFull=*/true, Chains>(p, parameters);
      case 4 * kLanes:
        return normalizeCached<4, /*IsFull=*/true, Chains>(p, parameters);
      default:
        break;
      }
  normalizeCached<kLayerNormCached / kLanes, /*IsFull=*/false, Chains>(p, parameters);
}

template <bool Chains, class T, class W>
__device__ __forceinline__ void normalizeRows(const LayerNormParameters<T, W> &p) {
  griddepLaunchDependents();
  constexpr int kSize = Vector<T>::kSize;
  if (!p.vectors)
    normalizeStreamed<1, Chains>(p);
  else if (p.columns > kLayerNormCached)
    normalizeStreamed<kSize, Chains>(p);
  else if ((Chains && p.isTwice) || p.columns > 32 * kSize)
    normalizeCached<Chains>(p);
  else if (p.columns <= 8 * kSize)
    normalizeShort<8, Chains>(p);
  else if (p.columns <= 16 * kSize)
    normalizeShort<16, Chains>(p);
  else
    normalizeShort<32, Chains>(p);
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
