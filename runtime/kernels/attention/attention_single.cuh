// Attention of a single query by all warps of a CTA, with keys and values in shared memory in TMA's
// swizzled layout. Each warp processes 16 keys at a time. In its mma operations all rows (or
// columns) of the query, of the weights and of the results are equal, so every lane has the values
// it needs. Included by attention_resident_kv.cu.
#pragma once

#include "runtime/kernels/attention/attention_resident_kv.h"
#include "runtime/kernels/attention/softmax_guards.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"
#include "runtime/kernels/sm90/hopper.cuh"

namespace cgc {
namespace {

using namespace device;

/// The memory of a stage for a single query: the query, and the partial results of each warp. The
/// weight of a key is 2^(scale score - base). A warp stores its base, the total of its weights, and
/// the weighted sums of values.
struct SingleMemory {
  uint8_t query[128];
  float sums[kResidentKvMaxGroups * 4][64];
  float2 totals[kResidentKvMaxGroups * 4];
};
static_assert(sizeof(SingleMemory) <= kResidentKvSingleBytes);

/// Computes the partial results of warp `warp` for a single query over the warp's part of the first
/// `seen` keys. `scale` includes a factor of log2(e). Waits for `isRead` before it stores them.
template <class T>
__device__ void attendSingle(int warp, int seen, float scale, const uint8_t *keys,
                             const uint8_t *values, SingleMemory &memory, uint64_t *isRead,
                             uint32_t parity) {
  constexpr int kKeys = 16;
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  // The row and vector whose address this lane gives to ldmatrix: four 8x8 matrices are two groups
  // of eight keys by two vectors.
  const int row = lane / 16 * 8 + lane % 8, vector = lane / 8 % 2;
  uint32_t query[2][4]; // Two columns of this lane in each group of eight columns.
#pragma unroll
  for (int half = 0; half < 2; ++half)
    loadMatrices(query[half], memory.query + (half * 4 + lane / 8) * 16);
  const uint32_t one = packPair<T>(1, 1), ones[4] = {one, one, one, one};
  float base = -INFINITY, totals[4] = {}, sums[4][4] = {};
#pragma unroll 1
  for (int first = warp * kKeys; first < seen; first += warps * kKeys) {
    float scores[2][4] = {}; // Two groups of eight keys; two of each are this lane's, in two rows.
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t matrices[4];
      loadMatrices(matrices, swizzledVector(keys, first + row, 2 * k + vector));
      const uint32_t low = query[k / 2][k % 2 * 2], high = query[k / 2][k % 2 * 2 + 1];
      const uint32_t rows[4] = {low, low, high, high};
      multiply<T>(scores[0], rows, matrices[0], matrices[1]);
      multiply<T>(scores[1], rows, matrices[2], matrices[3]);
    }
    float most = base;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float &score = scores[i / 2][i % 2];
      const bool isSeen = first + i / 2 * 8 + lane % 4 * 2 + i % 2 < seen;
      score = isSeen ? score * scale : -INFINITY;
      most = fmaxf(most, score);
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float subtracted = baseOf(most), factor = fastExp2(base - subtracted);
    base = most;
    uint32_t weights[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
      weights[h] =
          packPair<T>(fastExp2(scores[h][0] - subtracted), fastExp2(scores[h][1] - subtracted));
    totals[0] *= factor; // The other elements are not used.
    multiply<T>(totals, ones, weights[0], weights[1]);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (float &sum : sums[c])
        sum *= factor;
      uint32_t matrices[4];
      loadTransposed(matrices, swizzledVector(values, first + row, 2 * c + vector));
      multiply<T>(sums[c], matrices, weights[0], weights[1]);
    }
  }
  waitBarrier(isRead, parity);
  if (lane % 4 == 0) {
#pragma unroll
    for (int c = 0; c < 8; ++c)
      memory.sums[warp][c * 8 + lane / 4] = sums[c / 2][c % 2 * 2];
  }
  if (lane == 0)
    memory.totals[warp] = {base, totals[0]};
}

/// Combines the partial results of all warps for a single query and stores the result. One warp
/// calls it.
template <class T> __device__ void finishSingle(const SingleMemory &memory, T *to) {
  static_assert(kResidentKvMaxGroups * 4 <= 32);
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const float2 of =
      lane < warps ? memory.totals[lane] : float2{-INFINITY, 0}; // Base and total of warp `lane`.
  float most = of.x;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
  const float factor = fastExp2(of.x - baseOf(most)), total = warpSum(of.y * factor);
  float2 sums = {};
#pragma unroll 4
  for (int w = 0; w < warps; ++w) {
    const float times = __shfl_sync(0xffffffffu, factor, w);
    const float2 more = reinterpret_cast<const float2 *>(memory.sums[w])[lane];
    sums = {fmaf(more.x, times, sums.x), fmaf(more.y, times, sums.y)};
  }
  const float scale = __fdividef(1, divisorOf(total));
  *reinterpret_cast<uint32_t *>(to + 2 * lane) = packPair<T>(sums.x * scale, sums.y * scale);
}

} // namespace
} // namespace cgc
