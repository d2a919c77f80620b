// Device and host code shared by attention_resident_kv.cu and attention_split_kv.cuh: the kernel
// parameter, and the parts of the softmax of a warpgroup, online (Milakov and Gimelshein, 2018) and
// in powers of two.
#pragma once

#include "runtime/kernels/attention/attention_resident_kv.h"
#include "runtime/kernels/attention/heads.cuh"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/device/tensor_map.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm90/hopper.cuh"
#include "runtime/kernels/sm90/wgmma.cuh"

// Functions that only sm_90a code calls are unused in the other architectures.
#pragma nv_diag_suppress 177

namespace cgc {
namespace {

using namespace device;

template <class T> struct ResidentKvParameters {
  CUtensorMap q, k, v, outTiles;
  T *out;
  const T *single; ///< The single query of the first head; null if heads have none.
  HeadStrides qStrides, outStrides;
  int queries, keys;
  int tiles, stages, items;
  Divider slices, heads; ///< Slices of a head; heads of an entry of the batch.
  float scale;           ///< Includes a factor of log2(e).
  bool causal;           ///< Query i attends to keys 0 to i.
};

/// The position of an item: its slice of the queries of a head, some tiles.
struct Place {
  int slice, head, batch;
};
template <class T> __device__ Place placeOf(const ResidentKvParameters<T> &p, int item) {
  const uint32_t row = p.slices.quotient(uint32_t(item)), batch = p.heads.quotient(row);
  return {item - int(row * p.slices.divisor), int(row - batch * p.heads.divisor), int(batch)};
}

constexpr int kRowBytes = 128;
constexpr int kTileBytes = int(kResidentKvQueries) * kRowBytes;

// Scores of a warpgroup: score(b, e) is that of key 8 b + lane % 4 * 2 + e % 2, for the query of
// the thread's row if e < 2, otherwise of the row 8 below. `column` is lane % 4 * 2.

/// Sets the scores of the keys from `keys` on to -infinity. The first kFull keys always exist.
template <int kBlocks, int kFull, class Score>
__device__ void hideMissing(Score score, int keys, int column) {
#pragma unroll
  for (int b = kFull / 8; b < kBlocks; ++b)
    if (b * 8 + 8 > keys) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (b * 8 + column + e % 2 >= keys)
          score(b, e) = -INFINITY;
    }
}

/// The weights of a row are 2^(scale score - base). The base changes only when the largest scale
/// score exceeds it by more than this, so that weights stay far inside the range of f16 and
/// accumulators are rarely rescaled.
constexpr float kBaseSlack = 8;

/// Replaces scores by weights and updates the bases of both rows. Returns whether a base of the
/// warp changed; then the caller has to multiply the accumulators by `factors`.
template <int kBlocks, class Score>
__device__ bool exponentiate(Score score, float scale, float (&bases)[2], float (&factors)[2]) {
  float most[2];
  bool exceeds = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float highest[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      highest[c] = -INFINITY;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b)
      highest[b % 4] = fmaxf(highest[b % 4], fmaxf(score(b, 2 * h), score(b, 2 * h + 1)));
    most[h] = fmaxf(fmaxf(highest[0], highest[1]), fmaxf(highest[2], highest[3])) * scale;
    exceeds |= most[h] > bases[h] + kBaseSlack;
  }
  exceeds = __any_sync(0xffffffffu, exceeds);
  if (exceeds) {
#pragma unroll
    for (int h = 0; h < 2; ++h) { // The four threads of a row have the same base.
      most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 1));
      most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 2));
      const float base = fmaxf(bases[h], most[h]);
      factors[h] = fastExp2(bases[h] - baseOf(base));
      bases[h] = base;
    }
  }
  const float subtracted[2] = {baseOf(bases[0]), baseOf(bases[1])};
#pragma unroll
  for (int b = 0; b < kBlocks; ++b)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      score(b, e) = fastExp2(fmaf(score(b, e), scale, -subtracted[e / 2]));
  return exceeds;
}

/// The accumulators of a warpgroup's queries: weighted sums of values, and of ones.
struct Accumulators {
  float values[32], totals[4];
  __device__ void multiply(const float (&factors)[2]) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      values[i] *= factors[i / 2 % 2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      totals[i] *= factors[i / 2];
  }
  __device__ float total(int h) const { return totals[2 * h]; }
};

/// Starts wgmma operations that add weights times the rows of the tile `values` to `accumulators`,
/// or overwrite them unless `accumulate`. They read `weights` until the caller waits for them.
template <class T, int kKeys, class Score>
__device__ void addValues(Score score, uint64_t values, const void *ones,
                          Accumulators &accumulators, uint32_t (&weights)[kKeys / 16][4],
                          bool accumulate) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      weights[k][j] =
          packPair<T>(score(2 * k + j / 2, j % 2 * 2), score(2 * k + j / 2, j % 2 * 2 + 1));
  wgmmaFence();
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    multiplyByRows<T>(accumulators.values, weights[k], descriptorAt(values, k * 16 * kRowBytes),
                      accumulate || k > 0);
    multiplyByConstant<T>(accumulators.totals, weights[k], ones, accumulate || k > 0);
  }
  wgmmaCommit();
}

/// Writes the tile of ones, by the first threads of the CTA, and makes it visible to wgmma.
template <class T> __device__ void writeOnes(uint32_t (&ones)[64]) {
  if (threadIdx.x < 64) {
    ones[threadIdx.x] = packPair<T>(1, 1);
    fenceShared();
  }
}

/// Stores this thread's part of the 64 results of a query.
template <class T>
__device__ void storeQuery(T *to, const float (&accumulators)[32], int h, int column, float scale) {
#pragma unroll
  for (int b = 0; b < 8; ++b)
    *reinterpret_cast<uint32_t *>(to + b * 8 + column) =
        packPair<T>(accumulators[4 * b + 2 * h] * scale, accumulators[4 * b + 2 * h + 1] * scale);
}

/// The part of the parameter that both kernels use.
template <class T>
Result<ResidentKvParameters<T>> parametersOf(const LaunchAddresses &at, const ResidentKvLaunch &l) {
  constexpr DType dtype = kDTypeOf<T>;
  ResidentKvParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.q, tensorMap(at.reads[0], dtype, l.q));
  CGC_ASSIGN_OR_RETURN(p.k, tensorMap(at.reads[1], dtype, l.k));
  CGC_ASSIGN_OR_RETURN(p.v, tensorMap(at.reads[2], dtype, l.v));
  p.qStrides = l.qStrides;
  p.out = static_cast<T *>(at.writes[0]);
  p.outStrides = l.outStrides;
  p.heads = Divider(uint32_t(l.heads));
  p.slices = Divider(uint32_t(l.shape.items(1, l.queries)));
  p.queries = int(l.queries);
  p.keys = int(l.keys);
  p.scale = static_cast<float>(l.scale * kLog2e);
  return p;
}

} // namespace
} // namespace cgc
