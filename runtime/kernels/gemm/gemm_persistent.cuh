// gemm and gemm_norm for many rows of X: the persistent kernels. A CTA computes several output
// tiles in turn. The CTAs of a cluster share operands by multicast. The epilogue stages a tile's
// results in memory of their own, and TMA stores them during the mainloop of the next tile.
// Included by gemm.cu.
#pragma once

#include "runtime/kernels/gemm/persistent_shape.cuh"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

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

/// A kernel with wide clusters releases its tail launch after its own griddepcontrol.wait, when the
/// writes of all earlier kernels are in memory. PTX guarantees their visibility only to a thread
/// that waits. The tail launch does not wait before it reads, because its wait would be for this
/// kernel; but its CTAs start after the release, with none of that data in their caches. It waits
/// for this kernel before it exits, so that a successor that waits for the tail launch waits for
/// both.
template <class T, int kTileM, bool kNorm, Clusters kClusters>
__global__ void __launch_bounds__(PersistentShape<kTileM, kClusters>::kThreads, 1)
    __cluster_dims__(PersistentShape<kTileM, kClusters>::kCtas, 1, 1)
        gemmPersistent(const __grid_constant__ GemmParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = PersistentShape<kTileM, kClusters>;
  constexpr bool kWide = kClusters == Clusters::Wide, kTail = kClusters == Clusters::Tail;
  const ClusterTiles &tiles = kTail ? p.tailTiles : p.tiles;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  uint8_t *const staged = memory + p.stages * Shape::kStageBytes;
  __shared__ uint64_t full[kGemmMaxStages], empty[kGemmMaxStages];
  // Every thread arrives for its own accesses to shared memory. One lane for its warp would do, but
  // compute-sanitizer's racecheck then reports the other lanes' accesses as races.
  // stagedIsEmpty: the residual may overwrite the staged tile. stagedIsReady: results may be
  // written to it, and the residual, if any, is there. firstHalfIsFull, stagedIsFull: results are
  // written to its first half, to all of it.
  __shared__ uint64_t stagedIsEmpty, stagedIsReady, firstHalfIsFull, stagedIsFull;
  // statisticsAreStaged: the row statistics of the tile's rows are in shared memory.
  // epilogueIsPrepared: `scales` and `biases` are those of the tile; stagedIsFull means that they
  // have been read.
  __shared__ uint64_t statisticsAreStaged, epilogueIsPrepared;
  __shared__ alignas(8) float scales[kNorm ? kTileM : 1]; // Of rows; read in pairs.
  __shared__ float biases[Shape::kTileN];

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = int(clusterRank()), across = rank % Shape::kAcross,
            along = rank / Shape::kAcross;
  // Multicast masks: the ranks that share this CTA's rows of X, and those that share its rows of W.
  const auto xRanks = uint16_t(((1 << Shape::kAcross) - 1) << along * Shape::kAcross);
  const auto wRanks = uint16_t((1 | 1 << Shape::kAcross * (Shape::kAlong - 1)) << across);
  const bool hasResidual = !kNorm && p.residual; // gemm_norm has no residual.
  if (threadIdx.x == 0) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      // Arrivals of the consumer warps of all CTAs that this CTA loads operands for.
      initBarrier(&empty[s], (Shape::kAcross + Shape::kAlong - 1) * Shape::kWarps);
    }
    initBarrier(&stagedIsEmpty, 1);
    initBarrier(&stagedIsReady, 1);
    initBarrier(&firstHalfIsFull, Shape::kWarps * 32);
    initBarrier(&stagedIsFull, Shape::kWarps * 32);
    initBarrier(&statisticsAreStaged, 1);
    initBarrier(&epilogueIsPrepared, 64);
    fenceBarrierInit();
  }
  if constexpr (!kWide)
    releaseSuccessor();
  const auto waitForOperands = [] {
    if constexpr (!kTail)
      waitForPredecessor();
  };

  const int steps = (p.k + kTileK - 1) / kTileK;
  const int firstTile = int(blockIdx.x) / Shape::kCtas, tileStep = int(gridDim.x) / Shape::kCtas;
  struct Origin {
    int m, n;
  };
  const auto originOf = [&](int tile) {
    const int outer = int(tiles.ofRow.quotient(uint32_t(tile)));
    const int inner = tile - outer * int(tiles.ofRow.divisor);
    const int m = ((p.mIsInner ? inner : outer) * Shape::kAlong + along) * kTileM;
    return Origin{kTail ? tiles.firstM + m : m,
                  ((p.mIsInner ? outer : inner) * Shape::kAcross + across) * Shape::kTileN};
  };
  // Calls f with the origin and the turn, 0, 1 and so on, of each of the CTA's tiles.
  const auto forTiles = [&](auto f) {
    uint32_t turn = 0;
#pragma unroll 1
    for (int tile = firstTile; tile < tiles.count; tile += tileStep, ++turn)
      f(originOf(tile), turn);
  };
  // Calls f with the address of a box of the staged tile, and its first column and row of y. The
  // boxes of the first half of the rows come first.
  constexpr int kBoxes = 4 * Shape::kBoxesPerHalf;
  const auto withBox = [&](const Origin &origin, int box, auto f) {
    const int half = box / (2 * Shape::kBoxesPerHalf), ofHalf = box % (2 * Shape::kBoxesPerHalf);
    const int group = ofHalf / Shape::kBoxesPerHalf;
    const int m = (half * Shape::kBoxesPerHalf + ofHalf % Shape::kBoxesPerHalf) * Shape::kBoxM;
    f(staged + (group * kTileM + m) * 128, origin.n + group * 64, origin.m + m);
  };
  syncClusterRelaxed();
  // No other kernel reads W, so its lines leave the L2 cache first, unless this kernel reads W
  // repeatedly.
  const auto policyOfW = [&] {
    return !kWide && p.wIsConstant && (p.mIsInner || tiles.count <= tileStep) ? evictFirst()
                                                                              : evictNormal();
  };
  const auto rowsOf = [&](const Origin &origin) {
    const int rows = min(kTileM, p.m - origin.m);
    return kWide ? max(rows, 0) : rows; // Half of the last row of tiles may be empty.
  };

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kFewRegisters>();
    if (threadIdx.x == Shape::kWarps * 32) { // Loads operands and residuals.
      const CachePolicy wPolicy = policyOfW();
      const auto copyW = [&](int n, int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        uint8_t *const to = memory + stage * Shape::kStageBytes;
#pragma unroll
        for (int b = 0; b < Shape::kWBoxes; ++b) {
          const int row = (along * Shape::kWBoxes + b) * Shape::kWBoxRows;
          if constexpr (kWide)
            copyTileMulticast(to + row * 128, &p.w, i * kTileK, n + row, &full[stage], wRanks);
          else
            copyTile(to + row * 128, &p.w, i * kTileK, n + row, &full[stage], wPolicy);
        }
      };
      // The first stages of W, before the wait: the ring is still empty. No more than two, because
      // X would arrive after all these bytes.
      const bool hasTile = kClusters == Clusters::Pairs || firstTile < tiles.count;
      const int early = p.wIsConstant && hasTile ? min(steps, 2) : 0;
#pragma unroll 1
      for (int i = 0; i < early; ++i)
        copyW(originOf(firstTile).n, i, i);
      waitForOperands();
      if constexpr (kWide)
        releaseSuccessor();
      Ring ring{p.stages};
      forTiles([&](const Origin &origin, uint32_t turn) {
        int box = hasResidual ? 0 : kBoxes;
#pragma unroll 1
        for (int i = 0; i < steps || box < kBoxes; ++i) {
          // One box of the residual at a time, because operands would wait behind all of them. The
          // first follows the start of the mainloop: until then, TMA may still read the staged
          // tile.
          if (box < kBoxes && i > min(steps - 1, p.stages)) {
            if (box == 0) {
              waitBarrier(&stagedIsEmpty, turn & 1);
              arriveExpecting(&stagedIsReady, Shape::kStagedBytes);
            }
            withBox(origin, box++, [&](uint8_t *to, int n, int m) {
              copyTile(to, &p.residualTiles, n, m, &stagedIsReady);
            });
          }
          if (i >= steps)
            continue;
          uint8_t *const stage = memory + ring.stage * Shape::kStageBytes;
          if (turn > 0 || i >= early) {
            waitBarrier(&empty[ring.stage], ring.phase ^ 1);
            copyW(origin.n, i, ring.stage);
          }
          // Multicast to the same offset in all CTAs that share these rows. The bytes of another
          // CTA may arrive before the arrival above, but not before this stage is empty in all of
          // them.
#pragma unroll
          for (int b = 0; b < Shape::kXBoxes; ++b) {
            const int row = (across * Shape::kXBoxes + b) * Shape::kXBoxRows;
            copyTileMulticast(stage + Shape::kWBytes + row * 128, &p.x, i * kTileK, origin.m + row,
                              &full[ring.stage], xRanks);
          }
          ring.next();
        }
      });
      // A CTA may not exit while others arrive at its barriers.
#pragma unroll 1
      for (int s = 0; s < p.stages; ++s, ring.next())
        waitBarrier(&empty[ring.stage], ring.phase ^ 1);
      if constexpr (kTail) // For the kernel with wide clusters.
        waitForPredecessor();
    }
    if (threadIdx.x == Shape::kWarps * 32 + 32) { // Loads row statistics and stores results.
      waitForOperands();
      forTiles([&](const Origin &origin, uint32_t turn) {
        if constexpr (kNorm) { // `staged` holds the row statistics until the scales are computed.
          const uint32_t bytes = uint32_t(rowsOf(origin) * p.xGroups) * sizeof(RowStatistics);
          arriveExpecting(&statisticsAreStaged, bytes);
          if (!kWide || bytes > 0)
            copyBytes(staged, p.xStatistics + int64_t(origin.m) * p.xGroups, bytes,
                      &statisticsAreStaged);
          waitBarrier(&epilogueIsPrepared, turn & 1);
        }
        arrive(hasResidual ? &stagedIsEmpty : &stagedIsReady);
#pragma unroll 1
        for (int box = 0; box < kBoxes; ++box) {
          waitBarrier(box < kBoxes / 2 ? &firstHalfIsFull : &stagedIsFull, turn & 1);
          withBox(origin, box,
                  [&](uint8_t *from, int n, int m) { storeTile(&p.yTiles, n, m, from); });
        }
        waitStoresRead();
      });
    }
    if (warp >= Shape::kWarps + 2) { // Prepare the epilogues during mainloops.
      const int thread = int(threadIdx.x) - (Shape::kWarps + 2) * 32;
      if (thread == 0 && p.wIsConstant && !kTail) { // All CTAs together prefetch W to the L2 cache.
        const CachePolicy policy = policyOfW();
        constexpr int kRows = Shape::kWBoxRows;
        const int boxes = steps * ((p.n + kRows - 1) / kRows);
#pragma unroll 1
        for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
          prefetchTile(&p.w, box % steps * kTileK, box / steps * kRows, policy);
      }
      if (!p.biasIsConstant)
        waitForOperands();
      forTiles([&](const Origin &origin, uint32_t turn) {
        float of[2] = {}; // Two columns for each thread.
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (const int n = origin.n + thread + i * 64; p.bias && n < p.n)
            of[i] = toFloat(kTail ? __ldcg(p.bias + n) : p.bias[n]);
        if (turn > 0) // The previous epilogue has read them.
          waitBarrier(&stagedIsFull, (turn - 1) & 1);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          biases[thread + i * 64] = of[i];
        if constexpr (kNorm) {
          waitBarrier(&statisticsAreStaged, turn & 1);
          computeScales(p, reinterpret_cast<const RowStatistics *>(staged), rowsOf(origin), scales,
                        thread, 64);
          fenceShared(); // TMA may overwrite the statistics that this thread has read.
        }
        arrive(&epilogueIsPrepared);
      });
    }
  } else {
    // Consumers need no griddepcontrol.wait: the producer loads X after its own, and consumers
    // write results only after they have multiplied X.
    growRegisters<Shape::kManyRegisters>();
    const int group = warp / 4;
    float accumulators[kTileM / 2];
    // Descriptors of the operands in stage 0.
    const uint64_t w = warpUniform(tileDescriptor(memory + group * 64 * kTileK * 2));
    const uint64_t x = tileDescriptor(memory + Shape::kWBytes);
    Ring ring{p.stages};
    // A lane for each CTA that loads operands for this one: those that share its rows of X, then
    // the other one that shares its rows of W.
    const auto loader =
        kWide ? uint32_t(lane < Shape::kAcross ? along * Shape::kAcross + lane
                                               : (1 - along) * Shape::kAcross + across)
              : uint32_t(lane);
    forTiles([&](const Origin &origin, uint32_t turn) {
      const auto release = [&](int stage) {
        if (lane < Shape::kAcross + Shape::kAlong - 1)
          arriveAt(&empty[stage], loader);
      };
      release(
          mainloop<T, kTileM, Shape::kStageBytes>(accumulators, ring, full, steps, w, x, release));
      waitBarrier(&epilogueIsPrepared, turn & 1);
      const float bias[2] = {biases[warp * 16 + lane / 4], biases[warp * 16 + lane / 4 + 8]};
      waitBarrier(&stagedIsReady, turn & 1);
      // stmatrix with four 8x8 matrices: 0 and 1 are columns 0-7 and 8-15 of eight rows, 2 and 3
      // those of the next eight, in TMA's swizzled layout. The loop is unrolled and the first
      // epilogue has to fetch its instructions, so each iteration has few.
      uint8_t *const line = staged + group * kTileM * 128 + (lane / 16 * 8 + lane % 8) * 128 +
                            ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
      // Operands in shared memory for two groups of eight rows. They are loaded before the previous
      // results are stored, because a load does not pass a store.
      struct Loaded {
        Pair<T> residual[2][2];
        float2 scales[2]; // Of this thread's two rows in each group.
      };
      const auto load = [&](int j) {
        Loaded loaded;
        if (hasResidual)
          loadTransposed(reinterpret_cast<uint32_t(&)[4]>(loaded.residual), line + j * 8 * 128);
        if constexpr (kNorm)
          for (int i = 0; i < 2; ++i)
            loaded.scales[i] =
                *reinterpret_cast<const float2 *>(scales + (j + i) * 8 + lane % 4 * 2);
        return loaded;
      };
      const auto arriveStaged = [&](uint64_t *barrier) {
        fenceShared();
        arrive(barrier);
      };
      withActivation<T>(p.activation, [&](auto activation) {
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
            if constexpr (kNorm) {
              a = fmaf(a, of.scales[i / 2].x, bias[i % 2]);
              b = fmaf(b, of.scales[i / 2].y, bias[i % 2]);
            } else {
              a += bias[i % 2];
              b += bias[i % 2];
            }
            Pair<T> &pair = pairs[i / 2][i % 2];
            pair = activatePair<T>(activation, fromFloats<T>(a, b));
            if (hasResidual)
              pair = __hadd2_rn(pair, of.residual[i / 2][i % 2]);
          }
          storeTransposed(line + j * 8 * 128, pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]);
          if (j * 8 < kTileM / 2 && (j + 2) * 8 >= kTileM / 2)
            arriveStaged(&firstHalfIsFull);
        }
      });
      if (p.yStatistics) {
        syncThreads(1 + group, 128); // The warpgroup has staged its 64 columns.
        const int n = origin.n + group * 64;
        const int inside = min(8, (p.n - n) / 8);
        const int rows = inside > 0 ? rowsOf(origin) : 0;
        storeTileStatistics(p, staged + group * kTileM * 128, origin.m, n, rows, inside);
      }
      arriveStaged(&stagedIsFull);
    });
  }
#endif
}

} // namespace
} // namespace cgc
