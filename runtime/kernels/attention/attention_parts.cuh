// The parts of the kernel `attention`: chunks of keys and values in shared memory, and the steps of
// a warp, which has 16 queries. Fragments are those of mma: a lane has the elements of rows
// lane / 4 and lane / 4 + 8, and of columns lane % 4 * 2 and the next one of each tile of eight.
#pragma once

#include "runtime/kernels/attention/heads.cuh"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

using namespace device;

/// A chunk of keys or values in shared memory: rows of kColumns elements. The rows are either
/// padded against bank conflicts, or 128 bytes each in TMA's 128-byte swizzle.
template <class T, int kColumns, bool kSwizzled> struct ChunkTile {
  static constexpr int kPitch = kSwizzled ? kColumns : kColumns + 8;
  T *first;
  __device__ T *vector(int row, int index) const {
    return first + row * kPitch + (kSwizzled ? index ^ (row % 8) : index) * 8;
  }
};

/// Producer: all threads of the CTA copy a chunk of the keys `k` and values `v` of a head by
/// cp.async to keysOf(chunk) and valuesOf(chunk). Rows and columns that do not exist become zeros.
template <int kColumns, class T, class Keys, class Values, class F>
__device__ __forceinline__ void copyChunk(const HeadsParameters<T> &p, int chunk, const T *k,
                                          const T *v, const Keys &keysOf, const Values &valuesOf,
                                          int threads, const F &exists) {
  constexpr int kChunk = kAttentionChunk, kVectors = kColumns / 8;
  const int rows = min(kChunk, (p.keys - chunk * kChunk + 15) / 16 * 16);
  for (int i = threadIdx.x; i < rows * kVectors; i += threads) {
    const int row = i / kVectors, index = i % kVectors, key = chunk * kChunk + row;
    const bool valid = key < p.keys && exists(index * 8);
    copyAsync(keysOf(chunk).vector(row, index), k + (valid ? key * p.kStrides.row + index * 8 : 0),
              valid);
    copyAsync(valuesOf(chunk).vector(row, index),
              v + (valid ? key * p.vStrides.row + index * 8 : 0), valid);
  }
}

/// Loads the A fragments of the queries `from` of a head. `row`, `column`: the lane's first ones.
template <class T, int kSteps, class F>
__device__ __forceinline__ void loadQueries(const HeadsParameters<T> &p, const T *from,
                                            uint32_t (&q)[kSteps][4], int row, int column,
                                            const F &exists) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = row + i % 2 * 8;
    const T *const line = from + (r < p.queries ? r : 0) * p.qStrides.row + column + i / 2 * 8;
#pragma unroll
    for (int d = 0; d < kSteps; ++d)
      q[d][i] = exists(d * 16 + i / 2 * 8) ? *reinterpret_cast<const uint32_t *>(line + d * 16) : 0;
  }
}

/// scores = q k^T for a chunk, of which `left` keys remain. kAll: the chunk is full. Otherwise, a
/// group of 16 keys without a key is skipped and gets scores of -infinity.
template <bool kAll, class T, int kSteps, class Tile>
__device__ __forceinline__ void multiplyKeys(float (&scores)[8][4], const uint32_t (&q)[kSteps][4],
                                             const Tile &k, int left, int lane) {
#pragma unroll
  for (int g = 0; g < 4; ++g) {
    const bool hasKeys = kAll || g * 16 < left;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      scores[2 * g][i] = scores[2 * g + 1][i] = hasKeys ? 0 : -INFINITY;
    if (hasKeys) {
#pragma unroll
      for (int d = 0; d < kSteps; ++d) {
        uint32_t b[4];
        loadMatrices(b, k.vector(g * 16 + lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
        multiply<T>(scores[2 * g], q[d], b[0], b[1]);
        multiply<T>(scores[2 * g + 1], q[d], b[2], b[3]);
      }
    }
  }
}

/// The element of a mask as the number to add to a score.
__device__ __forceinline__ float addendOf(__half mask) {
  return addendOfF16Mask(toFloat(mask));
}
__device__ __forceinline__ float addendOf(__nv_bfloat16 mask) {
  return toFloat(mask);
}

/// Loads the elements of a head's mask for a chunk: pairs of adjacent keys, of the lane's two rows.
/// Those of keys from `keys` on are zeros.
template <class T>
__device__ __forceinline__ void loadMask(const HeadsParameters<T> &p, const T *mask,
                                         uint32_t (&pairs)[8][2], int firstKey, int keys, int row,
                                         int column) {
  const auto *bits = reinterpret_cast<const uint16_t *>(mask) + firstKey + column;
  const int left = keys - firstKey - column;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const uint16_t *const line = bits + min(row + h * 8, p.queries - 1) * p.maskStrides.row;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const bool hasBoth = n * 8 + 1 < left;
      if (p.maskHasPairs && hasBoth)
        pairs[n][h] = *reinterpret_cast<const uint32_t *>(line + n * 8);
      else
        pairs[n][h] =
            (n * 8 < left ? line[n * 8] : 0) | (hasBoth ? uint32_t(line[n * 8 + 1]) << 16 : 0);
    }
  }
}

/// Scales the scores of a chunk and adds the mask.
template <class T>
__device__ __forceinline__ void addMask(float scale, const uint32_t (&pairs)[8][2],
                                        float (&scores)[8][4]) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T element = reinterpret_cast<const T *>(&pairs[n][i / 2])[i % 2];
      scores[n][i] = fmaf(scores[n][i], scale, addendOf(element));
    }
}

/// Excludes keys from `keys` on and, if attention is causal, those that follow the query.
template <class T>
__device__ __forceinline__ void excludeKeys(const HeadsParameters<T> &p, float (&scores)[8][4],
                                            int firstKey, int keys, int row, int column) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = firstKey + n * 8 + column + i % 2, query = row + i / 2 * 8;
      if (key >= keys || (p.causal && key > query))
        scores[n][i] = -INFINITY;
    }
}

/// The maximum of `highest` and the scores of the lane's row lane / 4 + h * 8.
__device__ __forceinline__ float maximumOfRow(const float (&scores)[8][4], int h, float highest) {
#pragma unroll
  for (int n = 0; n < 8; n += 2)
    highest = fmaxf(fmaxf(highest, fmaxf(scores[n][2 * h], scores[n][2 * h + 1])),
                    fmaxf(scores[n + 1][2 * h], scores[n + 1][2 * h + 1]));
  highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
  return fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
}

/// Multiplies the accumulators of both rows by their factors.
template <int kTiles>
__device__ __forceinline__ void rescale(float (&out)[kTiles][4], const float (&factor)[2]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      out[n][i] *= factor[i / 2];
}

/// out += weights v for a chunk, of which `left` keys remain, with the weights rounded to T.
template <bool kAll, class T, int kTiles, class Tile>
__device__ __forceinline__ void addValues(float (&out)[kTiles][4], const float (&weights)[8][4],
                                          const Tile &v, int left, int lane) {
#pragma unroll
  for (int g = 0; g < 4; ++g) {
    if (!kAll && g * 16 >= left)
      continue;
    const uint32_t a[4] = {packPair<T>(weights[2 * g][0], weights[2 * g][1]),
                           packPair<T>(weights[2 * g][2], weights[2 * g][3]),
                           packPair<T>(weights[2 * g + 1][0], weights[2 * g + 1][1]),
                           packPair<T>(weights[2 * g + 1][2], weights[2 * g + 1][3])};
#pragma unroll
    for (int n = 0; n < kTiles / 2; ++n) {
      uint32_t b[4];
      loadTransposed(b, v.vector(g * 16 + lane / 8 % 2 * 8 + lane % 8, 2 * n + lane / 16));
      multiply<T>(out[2 * n], a, b[0], b[1]);
      multiply<T>(out[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// Stores a lane's partial results to shared memory, 32 floats apart: out, maxima, sums.
template <int kTiles>
__device__ __forceinline__ void storePartial(float *part, const float (&out)[kTiles][4],
                                             const float (&most)[2], const float (&sum)[2]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      part[(4 * n + i) * 32] = out[n][i];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    part[(kTiles * 4 + h) * 32] = most[h];
    part[(kTiles * 4 + 2 + h) * 32] = sum[h];
  }
}

/// Divides the accumulators by the sums of weights, of which each lane of a row has a part, rounds
/// them, and stores them to the rows `to` of a head.
template <class T, int kTiles, class F>
__device__ __forceinline__ void storeResults(const HeadsParameters<T> &p, T *to,
                                             const float (&out)[kTiles][4], const float (&sum)[2],
                                             int row, int column, const F &exists) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = sum[h];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const float scale = 1 / divisorOf(total);
    const int query = row + h * 8;
    if (query >= p.queries)
      continue;
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
      if (exists(n * 8))
        *reinterpret_cast<uint32_t *>(to + query * p.outStrides.row + n * 8 + column) =
            packPair<T>(out[n][2 * h] * scale, out[n][2 * h + 1] * scale);
  }
}

} // namespace
} // namespace cgc
