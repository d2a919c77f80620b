// The producer warps of a persistent GEMM kernel: loads of operands and residuals, stores of
// results, and the scales and biases of epilogues. Included by gemm_persistent.cuh.
#pragma once

#include "runtime/kernels/gemm/persistent_cta.cuh"

namespace cgc {
namespace {

/// One thread loads the operands of all tiles, and their residuals.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__device__ __forceinline__ void
loadOperands(const PersistentCta<T, kTileM, kForm, kClusters> &cta) {
  using Cta = PersistentCta<T, kTileM, kForm, kClusters>;
  using Shape = typename Cta::Shape;
  const CachePolicy wPolicy = cta.policyOfW();
  const auto copyW = [&](int n, int i, int stage) {
    arriveExpectTx(&cta.full[stage], Shape::kStageBytes);
    uint8_t *const to = cta.memory + stage * Shape::kStageBytes;
#pragma unroll
    for (int b = 0; b < Shape::kWBoxes; ++b) {
      const int row = (cta.along * Shape::kWBoxes + b) * Shape::kWBoxRows;
      if constexpr (Cta::kWide)
        loadW<kForm>(cta.p, to + row * 128, i, n + row, &cta.full[stage], cta.wRanks);
      else
        loadW<kForm>(cta.p, to + row * 128, i, n + row, &cta.full[stage], wPolicy);
    }
  };
  // The first stages of W, before the wait: the ring is still empty. No more than two, because
  // X would arrive after all these bytes.
  const bool hasTile = kClusters == Clusters::Pairs || cta.firstTile < cta.tiles.count;
  const int early = cta.p.wIsConstant && hasTile ? min(cta.steps, 2) : 0;
#pragma unroll 1
  for (int i = 0; i < early; ++i)
    copyW(cta.originOf(cta.firstTile).n, i, i);
  cta.waitForOperands();
  if constexpr (Cta::kWide)
    griddepLaunchDependents();
  Ring ring{cta.p.stages};
  cta.forTiles([&](const TileOrigin &origin, uint32_t turn) {
    int box = cta.hasResidual ? 0 : Cta::kBoxes;
#pragma unroll 1
    for (int i = 0; i < cta.steps || box < Cta::kBoxes; ++i) {
      // One box of the residual at a time, because operands would wait behind all of them. The
      // first follows the start of the mainloop: until then, TMA may still read the staged
      // tile.
      if (box < Cta::kBoxes && i > min(cta.steps - 1, cta.p.stages)) {
        if (box == 0) {
          waitBarrier(cta.stagedIsEmpty, turn & 1);
          arriveExpectTx(cta.stagedIsReady, Shape::kStagedBytes);
        }
        cta.withBox(origin, box++, [&](uint8_t *to, int n, int m) {
          tmaLoad2d(to, &cta.p.residualTiles, n, m, cta.stagedIsReady);
        });
      }
      if (i >= cta.steps)
        continue;
      uint8_t *const stage = cta.memory + ring.stage * Shape::kStageBytes;
      if (turn > 0 || i >= early) {
        waitBarrier(&cta.empty[ring.stage], ring.phase ^ 1);
        copyW(origin.n, i, ring.stage);
      }
      // Multicast to the same offset in all CTAs that share these rows. The bytes of another
      // CTA may arrive before the arrival above, but not before this stage is empty in all of
      // them.
#pragma unroll
      for (int b = 0; b < Shape::kXBoxes; ++b) {
        const int row = (cta.across * Shape::kXBoxes + b) * Shape::kXBoxRows;
        loadX<kForm>(cta.p, stage + Shape::kWBytes + row * 128, i,
                     rowOrigin<kForm>(cta.p, origin.m + row), &cta.full[ring.stage], cta.xRanks);
      }
      ring.next();
    }
  });
  // A CTA may not exit while others arrive at its barriers.
#pragma unroll 1
  for (int s = 0; s < cta.p.stages; ++s, ring.next())
    waitBarrier(&cta.empty[ring.stage], ring.phase ^ 1);
  if constexpr (Cta::kTail) // For the kernel with wide clusters.
    griddepWait();
}

/// One thread loads the row statistics of X and stores the results.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__device__ __forceinline__ void
storeResults(const PersistentCta<T, kTileM, kForm, kClusters> &cta) {
  using Cta = PersistentCta<T, kTileM, kForm, kClusters>;
  using Shape = typename Cta::Shape;
  cta.waitForOperands();
  cta.forTiles([&](const TileOrigin &origin, uint32_t turn) {
    if constexpr (kForm == GemmForm::Norm) { // `staged` holds the row statistics until the scales
                                             // are computed.
      const uint32_t bytes = uint32_t(cta.rowsOf(origin) * cta.p.xGroups) * sizeof(RowStatistics);
      arriveExpectTx(cta.statisticsAreStaged, bytes);
      if (!Cta::kWide || bytes > 0)
        copyBytes(cta.staged, cta.p.xStatistics + int64_t(origin.m) * cta.p.xGroups, bytes,
                  cta.statisticsAreStaged);
      waitBarrier(cta.epilogueIsPrepared, turn & 1);
    }
    arrive(cta.hasResidual ? cta.stagedIsEmpty : cta.stagedIsReady);
#pragma unroll 1
    for (int box = 0; box < Cta::kBoxes; ++box) {
      waitBarrier(box < Cta::kBoxes / 2 ? cta.firstHalfIsFull : cta.stagedIsFull, turn & 1);
      cta.withBox(origin, box,
                  [&](uint8_t *from, int n, int m) { tmaStore2d(&cta.p.yTiles, n, m, from); });
    }
    waitStoresRead();
  });
}

/// Computes the scales of `rows` rows of X from their statistics in shared memory, one thread for
/// each row. Shared memory accesses and shuffles take hundreds of clocks while the tensor cores
/// read their operands, so a thread exchanges nothing with others.
template <class T>
__device__ void computeScales(const GemmParameters<T> &p, const RowStatistics *statistics, int rows,
                              float *scales, int thread, int threads) {
  const int pairs = p.xGroups / 2; // Pairs of groups, 16 bytes each.
  for (int t = thread; t < rows; t += threads) {
    const float4 *const row = reinterpret_cast<const float4 *>(statistics) + t * pairs;
    RowStatistics all{};
#pragma unroll 8
    for (int i = 0, at = thread % pairs; i < pairs; ++i) {
      all.addTwo(row[at]);
      at = at + 1 == pairs ? 0 : at + 1; // Neighboring threads start at different banks.
    }
    scales[t] = scaleOf(p, all);
  }
}

/// Two warps prepare the epilogues during mainloops, biases and the scales of rows, because a load
/// from global memory waits behind all operands in flight.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__device__ __forceinline__ void
prepareEpilogues(const PersistentCta<T, kTileM, kForm, kClusters> &cta) {
  using Cta = PersistentCta<T, kTileM, kForm, kClusters>;
  using Shape = typename Cta::Shape;
  const int thread = int(threadIdx.x) - (Shape::kWarps + 2) * 32;
  // All CTAs together prefetch W to the L2 cache. That of conv is small.
  if (thread == 0 && cta.p.wIsConstant && !Cta::kTail && kForm != GemmForm::Conv) {
    const CachePolicy policy = cta.policyOfW();
    constexpr int kRows = Shape::kWBoxRows;
    const int boxes = cta.steps * ((cta.p.n + kRows - 1) / kRows);
#pragma unroll 1
    for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
      prefetchTile(&cta.p.w, box % cta.steps * kTileK, box / cta.steps * kRows, policy);
  }
  if (!cta.p.biasIsConstant)
    cta.waitForOperands();
  cta.forTiles([&](const TileOrigin &origin, uint32_t turn) {
    float of[2] = {}; // Two columns for each thread.
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (const int n = origin.n + thread + i * 64; cta.p.bias && n < cta.p.n)
        of[i] = toFloat(Cta::kTail ? __ldcg(cta.p.bias + n) : cta.p.bias[n]);
    if (turn > 0) // The previous epilogue has read them.
      waitBarrier(cta.stagedIsFull, (turn - 1) & 1);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      cta.biases[thread + i * 64] = of[i];
    if constexpr (kForm == GemmForm::Norm) {
      waitBarrier(cta.statisticsAreStaged, turn & 1);
      computeScales(cta.p, reinterpret_cast<const RowStatistics *>(cta.staged), cta.rowsOf(origin),
                    cta.scales, thread, 64);
      fenceShared(); // TMA may overwrite the statistics that this thread has read.
    }
    arrive(cta.epilogueIsPrepared);
  });
}

} // namespace
} // namespace cgc
