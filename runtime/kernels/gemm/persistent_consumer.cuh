// The consumer warpgroups of a persistent GEMM kernel: mainloop, epilogue, row statistics of y.
// Included by gemm_persistent.cuh.
#pragma once

#include "runtime/kernels/gemm/persistent_cta.cuh"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

/// Arrives after this thread's writes to the staged tile, which TMA reads.
__device__ __forceinline__ void arriveStaged(uint64_t *barrier) {
  fenceShared();
  arrive(barrier);
}

/// The epilogue of a warp: applies scale or bias, activation and residual to the accumulators, and
/// writes the rounded results to the staged tile. `bias`: of the lane's two columns.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__device__ __forceinline__ void finishTile(const PersistentCta<T, kTileM, kForm, kClusters> &cta,
                                           const float (&accumulators)[kTileM / 2],
                                           const float (&bias)[2], int group) {
  // stmatrix with four 8x8 matrices: 0 and 1 are columns 0-7 and 8-15 of eight rows, 2 and 3
  // those of the next eight, in TMA's swizzled layout. The loop is unrolled and the first
  // epilogue has to fetch its instructions, so each iteration has few.
  uint8_t *const line = cta.staged + group * kTileM * 128 +
                        (cta.lane / 16 * 8 + cta.lane % 8) * 128 +
                        ((cta.warp % 4 * 2 + cta.lane / 8 % 2) ^ cta.lane % 8) * 16;
  // Operands in shared memory for two groups of eight rows. They are loaded before the previous
  // results are stored, because a load does not pass a store.
  struct Loaded {
    Pair<T> residual[2][2];
    float2 scales[2]; // Of this thread's two rows in each group.
  };
  const auto load = [&](int j) {
    Loaded loaded;
    if (cta.hasResidual)
      loadTransposed(reinterpret_cast<uint32_t(&)[4]>(loaded.residual), line + j * 8 * 128);
    if constexpr (kForm == GemmForm::Norm)
      for (int i = 0; i < 2; ++i)
        loaded.scales[i] =
            *reinterpret_cast<const float2 *>(cta.scales + (j + i) * 8 + cta.lane % 4 * 2);
    return loaded;
  };
  withActivation<T>(cta.p.activation, [&](auto activation) {
    Loaded loaded = load(0);
#pragma unroll
    for (int j = 0; j < kTileM / 8; j += 2) {
      const Loaded of = loaded;
      if (j + 2 < kTileM / 8)
        loaded = load(j + 2);
      Pair<T> pairs[2][2]; // Of two groups of rows: two rows in each, in two columns.
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float a = accumulators[(j + i / 2) * 4 + i % 2 * 2],
              b = accumulators[(j + i / 2) * 4 + i % 2 * 2 + 1];
        if constexpr (kForm == GemmForm::Norm) {
          a = fmaf(a, of.scales[i / 2].x, bias[i % 2]);
          b = fmaf(b, of.scales[i / 2].y, bias[i % 2]);
        } else {
          a += bias[i % 2];
          b += bias[i % 2];
        }
        Pair<T> &pair = pairs[i / 2][i % 2];
        pair = fromFloats<T>(a, b);
        if constexpr (kForm != GemmForm::Conv)
          pair = activatePair<T>(activation, pair);
        if (cta.hasResidual)
          pair = withResidual<kForm>(cta.p, pair, of.residual[i / 2][i % 2]);
        if constexpr (kForm == GemmForm::Conv)
          pair = activatePair<T>(activation, pair);
      }
      storeTransposed(line + j * 8 * 128, pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]);
      if (j * 8 < kTileM / 2 && (j + 2) * 8 >= kTileM / 2)
        arriveStaged(cta.firstHalfIsFull);
    }
  });
}

/// Writes the row statistics of 64 columns of y, from column `n` on, by a warpgroup: those of
/// `rows` rows from row `m` on. Their elements are in `staged`, the first `inside` vectors of eight
/// of each row inside y. A thread for each row, because shuffles would take longer.
template <class T>
__device__ __forceinline__ void storeTileStatistics(const GemmParameters<T> &p, uint8_t *staged,
                                                    int m, int n, int rows, int inside) {
#pragma unroll 1
  for (int t = int(threadIdx.x) % 128; t < rows; t += 128) {
    RowStatistics statistics{};
#pragma unroll 4
    for (int v = 0; v < inside; ++v) {
      Pairs<T> values = *reinterpret_cast<const Pairs<T> *>(swizzledVector(staged, t, v));
#pragma unroll
      for (int i = 0; i < Pairs<T>::kSize; ++i)
        statistics.add(toFloats(values[i]));
    }
    p.yStatistics[int64_t(m + t) * p.yGroups + n / kStatisticsGroup] = statistics;
  }
}

/// A warpgroup multiplies the operands of each tile and finishes its 64 columns.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__device__ __forceinline__ void
consumeTiles(const PersistentCta<T, kTileM, kForm, kClusters> &cta) {
  using Cta = PersistentCta<T, kTileM, kForm, kClusters>;
  using Shape = typename Cta::Shape;
  const int group = cta.warp / 4;
  float accumulators[kTileM / 2];
  // Descriptors of the operands in stage 0.
  const uint64_t w = warpUniform(tileDescriptor(cta.memory + group * 64 * kTileK * 2));
  const uint64_t x = tileDescriptor(cta.memory + Shape::kWBytes);
  Ring ring{cta.p.stages};
  // A lane for each CTA that loads operands for this one: those that share its rows of X, then
  // the other one that shares its rows of W.
  const auto loader = Cta::kWide ? uint32_t(cta.lane < Shape::kAcross
                                                ? cta.along * Shape::kAcross + cta.lane
                                                : (1 - cta.along) * Shape::kAcross + cta.across)
                                 : uint32_t(cta.lane);
  cta.forTiles([&](const TileOrigin &origin, uint32_t turn) {
    const auto release = [&](int stage) {
      if (cta.lane < Shape::kAcross + Shape::kAlong - 1)
        arriveAt(&cta.empty[stage], loader);
    };
    release(mainloop<T, kTileM, Shape::kStageBytes>(accumulators, ring, cta.full, cta.steps, w, x,
                                                    release));
    waitBarrier(cta.epilogueIsPrepared, turn & 1);
    const float bias[2] = {cta.biases[cta.warp * 16 + cta.lane / 4],
                           cta.biases[cta.warp * 16 + cta.lane / 4 + 8]};
    waitBarrier(cta.stagedIsReady, turn & 1);
    finishTile(cta, accumulators, bias, group);
    if (cta.p.yStatistics) {
      syncThreads(1 + group, 128); // The warpgroup has staged its 64 columns.
      const int n = origin.n + group * 64;
      const int inside = min(8, (cta.p.n - n) / 8);
      const int rows = inside > 0 ? cta.rowsOf(origin) : 0;
      storeTileStatistics(cta.p, cta.staged + group * kTileM * 128, origin.m, n, rows, inside);
    }
    arriveStaged(cta.stagedIsFull);
  });
}

} // namespace
} // namespace cgc
