// The shape of the GEMM kernels that are not persistent, and the parts of their epilogue: the
// exchange of split-K clusters, and staging. Included by gemm.cuh.
#pragma once

#include "runtime/kernels/gemm/gemm_common.cuh"

namespace cgc {
namespace {

template <int kTileN, int kTileM, int kSplitK, GemmForm kForm> struct GemmShape {
  static constexpr GemmTile kTile{"", kTileN, kTileM, kSplitK, false, kForm};
  static constexpr int kWBytes = kTileN * kTileK * 2;
  static constexpr int kStageBytes = kWBytes + kTileM * kTileK * 2;
  static constexpr int kWarpgroups = kTileN / 64;
  /// Consumer threads. The producer warp follows them, then gemm_norm's warp that helps to compute
  /// scales.
  static constexpr int kConsumers = kWarpgroups * 128, kThreads = int(kTile.threads());
  static constexpr int kMaxGroups = int(kTile.maxGroups());
  static constexpr int kSplitKBytes = int(kTile.splitKBytes());
  /// Elements from row to row of the staged results: 64 of N, padded against bank conflicts.
  static constexpr int kResultPitch = 64 + 8;
};

/// Sends each CTA of a split-K cluster the accumulators of the groups of eight rows that it stores.
template <int kTileM, int kSplitK, class Shape>
__device__ __forceinline__ void sendPartials(const float (&accumulators)[kTileM / 2],
                                             float4 *partials, int rank) {
  const auto firstGroupOf = [](int rank) { return kTileM / 8 * rank / kSplitK; };
  // Also to this CTA: without a branch for each rank the code is half as large.
#pragma unroll
  for (int r = 0; r < kSplitK; ++r) {
    const uint32_t to =
        addressInCta(partials + rank * Shape::kMaxGroups * Shape::kConsumers, uint32_t(r));
#pragma unroll
    for (int j = firstGroupOf(r); j < firstGroupOf(r + 1); ++j)
      storeToCta(to + (j - firstGroupOf(r)) * Shape::kConsumers * 16,
                 {accumulators[4 * j], accumulators[4 * j + 1], accumulators[4 * j + 2],
                  accumulators[4 * j + 3]});
  }
}

/// Scales the accumulators or adds the bias, rounds them, and writes them transposed to the
/// warpgroup's results in shared memory.
template <class T, int kTileM, GemmForm kForm, class Shape>
__device__ __forceinline__ void stageResults(T *staged, const float (&own)[4 * Shape::kMaxGroups],
                                             const float *scales, const float (&bias)[2],
                                             int firstGroup, int warp, int lane) {
  // stmatrix: matrices 0 and 1 are columns 0-7 and 8-15 of one group of eight rows, matrices 2 and
  // 3 those of the next group.
  const int matrix = lane / 8;
  T *const line =
      staged + (matrix / 2 * 8 + lane % 8) * Shape::kResultPitch + warp % 4 * 16 + matrix % 2 * 8;
  // Of group `g` of eight rows: this thread's two rows in two columns, as two pairs.
  const auto results = [&](int g, uint32_t(&pairs)[2]) {
    float a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = own[4 * g + i];
    if constexpr (kForm == GemmForm::Norm) {
      const float2 two = *reinterpret_cast<const float2 *>(
          scales + min((firstGroup + g) * 8, kTileM - 8) + lane % 4 * 2);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = fmaf(a[i], i % 2 ? two.y : two.x, bias[i / 2]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] += bias[i / 2];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      pairs[h] = packPair<T>(a[2 * h], a[2 * h + 1]);
  };
#pragma unroll
  for (int g = 0; g < Shape::kMaxGroups; g += 2) {
    uint32_t one[2], two[2];
    results(g, one);
    if (g + 1 < Shape::kMaxGroups) {
      results(g + 1, two);
      storeTransposed(line + g * 8 * Shape::kResultPitch, one[0], one[1], two[0], two[1]);
    } else { // A last group without a partner is stored twice to the same place.
      storeTransposed(staged + (g * 8 + lane % 8) * Shape::kResultPitch + warp % 4 * 16 +
                          matrix % 2 * 8,
                      one[0], one[1], one[0], one[1]);
    }
  }
}

} // namespace
} // namespace cgc
