// Attention of one query by all warps of a block, without tensor cores, its keys and values in
// shared memory as tensor copies write them: for attention_whole.cu. Loops are not unrolled far: a
// warp executes them a few times, and fetching their instructions takes longer.
#pragma once

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/attention_whole.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/hopper.cuh"

namespace cgc {
namespace {

using namespace device;

/// What a query's softmax has found in some keys: the sum of 2^(scale score - base), the same in
/// all lanes, and the sums of values times these, two of 64 columns in each lane.
struct Found {
  float base = -INFINITY, total = 0;
  float2 sums = {};
  /// Makes `most` the base if it is larger.
  __device__ void see(float most) {
    most = fmaxf(base, most);
    const float factor = fastExp2(base - most);
    base = most;
    total *= factor;
    sums = {sums.x * factor, sums.y * factor};
  }
  __device__ void add(float weight, float2 value) {
    total += weight;
    sums = {fmaf(weight, value.x, sums.x), fmaf(weight, value.y, sums.y)};
  }
};

/// The memory of a stage for a single query: the query, and what each warp has found for it.
struct SingleMemory {
  uint8_t query[128];
  float2 sums[kWholeMaxGroups * 4][32], bases[kWholeMaxGroups * 4]; ///< Bases and totals.
};
static_assert(sizeof(SingleMemory) <= kWholeSingleBytes);

/// What a warp finds for a single query in its share of the `seen` keys: 16 at a time, two lanes
/// for each, then one at a time; `scale` is times log2(e). `turn` changes who has one more. Waits
/// for `isRead` before it tells.
template <class T>
__device__ void attendSingle(int seen, float scale, const uint8_t *keys, const uint8_t *values,
                             int turn, SingleMemory &memory, uint64_t *isRead, uint32_t parity) {
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const int warp = (int(threadIdx.x) / 32 + turn) % warps;
  const int whole = seen / 16 * 16;
  const auto twoOf = [&](const uint8_t *rows, int row) {
    return toFloats(
        *reinterpret_cast<const Pair<T> *>(swizzledVector(rows, row, lane / 4) + lane % 4 * 4));
  };
  Found found;
#pragma unroll 1
  for (int first = warp * 16; first < whole; first += warps * 16) {
    float parts[2] = {};
#pragma unroll 1
    for (int v = 0; v < 4; ++v) {
      const int index = lane % 2 * 4 + v;
      Pairs<T> q = loadPairs(reinterpret_cast<const T *>(memory.query) + index * 8);
      Pairs<T> k =
          loadPairs(reinterpret_cast<const T *>(swizzledVector(keys, first + lane / 2, index)));
#pragma unroll
      for (int i = 0; i < Pairs<T>::kSize; ++i) {
        const float2 a = toFloats(q[i]), b = toFloats(k[i]);
        parts[i % 2] = fmaf(a.x, b.x, fmaf(a.y, b.y, parts[i % 2]));
      }
    }
    float score = parts[0] + parts[1];
    score = (score + __shfl_xor_sync(0xffffffffu, score, 1)) * scale;
    float most = score;
#pragma unroll
    for (int offset = 2; offset < 32; offset *= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    found.see(most);
    const float weight = fastExp2(score - found.base);
#pragma unroll 4
    for (int i = 0; i < 16; ++i)
      found.add(__shfl_sync(0xffffffffu, weight, 2 * i), twoOf(values, first + i));
  }
#pragma unroll 1
  for (int key = whole + warp; key < seen; key += warps) {
    const float2 a = twoOf(memory.query, 0), b = twoOf(keys, key);
    const float score = warpSum(a.x * b.x + a.y * b.y) * scale;
    found.see(score);
    found.add(fastExp2(score - found.base), twoOf(values, key));
  }
  waitBarrier(isRead, parity);
  memory.sums[warp][lane] = found.sums;
  if (lane == 0)
    memory.bases[warp] = {found.base, found.total};
}

/// Puts together what all warps have found for a single query, and stores its result.
template <class T> __device__ void finishSingle(const SingleMemory &memory, T *to) {
  static_assert(kWholeMaxGroups * 4 <= 32);
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  const float2 of = lane < warps ? memory.bases[lane] : float2{-INFINITY, 0}; // Of a warp.
  float most = of.x;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
  const float factor = fastExp2(of.x - most), total = warpSum(of.y * factor);
  float2 sums = {};
#pragma unroll 4
  for (int w = 0; w < warps; ++w) {
    const float times = __shfl_sync(0xffffffffu, factor, w);
    const float2 more = memory.sums[w][lane];
    sums = {fmaf(more.x, times, sums.x), fmaf(more.y, times, sums.y)};
  }
  const float scale = __fdividef(1, total);
  *reinterpret_cast<uint32_t *>(to + 2 * lane) = packPair<T>(sums.x * scale, sums.y * scale);
}

} // namespace
} // namespace cgc
