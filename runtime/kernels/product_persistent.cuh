// product of many tokens: the persistent kernel. Blocks stay for all tiles; the two of a cluster
// share the copies of their tokens; results are staged, and stored while the next tile is
// multiplied. For product.cu.
#pragma once

#include "runtime/kernels/product.cuh"

namespace cgc {
namespace {

/// Both blocks of a cluster have the same tokens, each has 128 features of its own, in two
/// warpgroups.
template <int kTokens> struct PersistentShape {
  static constexpr ProductTile kTile{"", kPersistentFeatures, kTokens, 1, true};
  static constexpr int kFeatures = kPersistentFeatures;
  static constexpr int kWeightBytes = kFeatures * kDepthTile * 2;
  static constexpr int kTokenBytes = kTokens * kDepthTile * 2;
  static constexpr int kStageBytes = kWeightBytes + kTokenBytes;
  /// Warps that multiply; then a warpgroup with one that fetches operands and one that stores.
  static constexpr int kWarps = kFeatures / 16, kThreads = int(kTile.threads());
  /// Results are stored in boxes of that many tokens and 64 features.
  static constexpr int kBoxTokens = int(kTile.boxTokens());
  static constexpr int kStagedBytes = kTokens * kFeatures * 2;
  static_assert(kThreads == kWarps * 32 + 128 && kTokens % 16 == 0 && kTokens % kBoxTokens == 0 &&
                kBoxTokens % 8 == 0);
  static_assert(kTile.sharedBytes(2) ==
                2 * kStageBytes + kStagedBytes + 1024); // The last to begin at a multiple of it.
  /// Of the registers of 384 threads, 168 each, what a thread of the last warpgroup keeps, and what
  /// the others have then: 128 * 40 + 256 * 232 = 384 * 168.
  static constexpr int kFewRegisters = 40, kManyRegisters = 232;
};

template <class T, int kTokens>
__global__ void __launch_bounds__(PersistentShape<kTokens>::kThreads, 1) __cluster_dims__(2, 1, 1)
    productPersistent(const __grid_constant__ ProductParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = PersistentShape<kTokens>;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  uint8_t *const staged = memory + p.stages * Shape::kStageBytes;
  __shared__ uint64_t full[kProductMaxStages], empty[kProductMaxStages];
  // The staged tile may be written, and has its residual; it has been written.
  __shared__ uint64_t stagedIsFree, stagedIsFull;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = int(clusterRank());
  if (threadIdx.x == 0) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], 2 * Shape::kWarps); // Both blocks write to both.
    }
    initBarrier(&stagedIsFree, 1);
    initBarrier(&stagedIsFull, Shape::kWarps);
    fenceBarrierInit();
  }
  releaseSuccessor();
  syncCluster();

  const int steps = (p.depth + kDepthTile - 1) / kDepthTile;
  const int featureTiles = (p.features + 2 * Shape::kFeatures - 1) / (2 * Shape::kFeatures);
  const int tiles = (p.tokens + kTokens - 1) / kTokens * featureTiles;
  const int firstTile = int(blockIdx.x) / 2, tileStep = int(gridDim.x) / 2;
  const auto token0Of = [&](int tile) { return tile / featureTiles * kTokens; };
  const auto feature0Of = [&](int tile) {
    return (tile % featureTiles * 2 + rank) * Shape::kFeatures;
  };

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kFewRegisters>();
    if (threadIdx.x == Shape::kWarps * 32) { // Fetches operands.
      if (p.wIsConstant) {                   // The blocks together bring all of it near.
        const int boxes = steps * featureTiles * 2;
        for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
          prefetchTile(&p.w, box % steps * kDepthTile, box / steps * Shape::kFeatures);
      }
      const auto copyWeights = [&](int tile, int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        copyTile(memory + stage * Shape::kStageBytes, &p.w, i * kDepthTile, feature0Of(tile),
                 &full[stage]);
      };
      // Of the first tile, which every block has: nobody has used the ring.
      const int early = p.wIsConstant ? min(steps, p.stages) : 0;
      for (int i = 0; i < early; ++i)
        copyWeights(firstTile, i, i);
      waitForPredecessor();
      Ring ring{p.stages};
      for (int tile = firstTile; tile < tiles; tile += tileStep)
        for (int i = 0; i < steps; ++i, ring.next()) {
          uint8_t *const stage = memory + ring.stage * Shape::kStageBytes;
          if (tile > firstTile || i >= early) {
            waitBarrier(&empty[ring.stage], ring.phase ^ 1);
            copyWeights(tile, i, ring.stage);
          }
          // To the same place of both blocks. The other block's bytes may come before the arrival
          // above, but not before this stage is empty in both.
          copyTileToBoth(stage + Shape::kWeightBytes + rank * (Shape::kTokenBytes / 2), &p.x,
                         i * kDepthTile, token0Of(tile) + rank * (kTokens / 2), &full[ring.stage]);
        }
    }
    if (threadIdx.x == Shape::kWarps * 32 + 32) { // Fetches residuals and stores results.
      waitForPredecessor();
      const auto forBoxes = [&](int tile, auto f) {
        for (int box = 0; box < 2 * kTokens / Shape::kBoxTokens; ++box) {
          const int group = box * Shape::kBoxTokens / kTokens,
                    token = box * Shape::kBoxTokens % kTokens;
          f(staged + box * Shape::kBoxTokens * 128, feature0Of(tile) + group * 64,
            token0Of(tile) + token);
        }
      };
      const auto prepare = [&](int tile) {
        if (!p.residual)
          return arrive(&stagedIsFree);
        arriveExpecting(&stagedIsFree, Shape::kStagedBytes);
        forBoxes(tile, [&](uint8_t *box, int feature, int token) {
          copyTile(box, &p.residualTiles, feature, token, &stagedIsFree);
        });
      };
      uint32_t turn = 0;
      if (firstTile < tiles)
        prepare(firstTile);
      for (int tile = firstTile; tile < tiles; tile += tileStep, ++turn) {
        waitBarrier(&stagedIsFull, turn & 1);
        forBoxes(tile, [&](uint8_t *box, int feature, int token) {
          storeTile(&p.yTiles, feature, token, box);
        });
        waitStoresRead();
        if (tile + tileStep < tiles)
          prepare(tile + tileStep);
      }
      waitStores();
    }
  } else {
    growRegisters<Shape::kManyRegisters>();
    const int group = warp / 4;
    waitForPredecessor();
    float sums[kTokens / 2];
    Ring ring{p.stages};
    uint32_t turn = 0;
    for (int tile = firstTile; tile < tiles; tile += tileStep, ++turn) {
      int last = 0; // The stage of the iteration before.
      const auto release = [&] {
        if (lane < 2)
          arriveAt(&empty[last], uint32_t(lane));
      };
#pragma unroll 1
      for (int i = 0; i < steps; ++i, ring.next()) {
        const uint8_t *stage = memory + ring.stage * Shape::kStageBytes;
        waitBarrier(&full[ring.stage], ring.phase);
        const uint64_t w = tileDescriptor(stage + group * 64 * kDepthTile * 2);
        const uint64_t x = tileDescriptor(stage + Shape::kWeightBytes);
        wgmmaFence();
#pragma unroll
        for (int k = 0; k < kDepthTile / 16; ++k)
          Wgmma<T, kTokens>::run(sums, w + 2 * k, x + 2 * k, i + k > 0);
        wgmmaCommit();
        wgmmaWait<1>();
        if (i > 0)
          release();
        last = ring.stage;
      }
      float bias[2] = {}; // Of the thread's two rows of sums.
      if (p.bias)
        for (int h = 0; h < 2; ++h)
          if (const int feature = feature0Of(tile) + warp * 16 + lane / 4 + h * 8;
              feature < p.features)
            bias[h] = toFloat(p.bias[feature]);
      wgmmaWait<0>();
      release();
      waitBarrier(&stagedIsFree, turn & 1);
      // Four matrices of 8 tokens and 8 features: 0 and 1 are features 0-7 and 8-15 of eight
      // tokens, 2 and 3 of the next eight; swizzled, as tensor copies have it.
      uint8_t *const line = staged + group * kTokens * 128 + (lane / 16 * 8 + lane % 8) * 128 +
                            ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
      withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
        for (int j = 0; j < kTokens / 8; j += 2) {
          Pair<T> pairs[2][2]; // Of eight tokens and the next: this thread's two, for two features.
          Pair<T> more[2][2];
          if (p.residual)
            loadTransposed(line + j * 8 * 128, more[0][0], more[0][1], more[1][0], more[1][1]);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float *const two = sums + (j + i / 2) * 4 + i % 2 * 2;
            Pair<T> &pair = pairs[i / 2][i % 2];
            pair = activatePair<T>(activation,
                                   fromFloats<T>(two[0] + bias[i % 2], two[1] + bias[i % 2]));
            if (p.residual)
              pair = __hadd2_rn(pair, more[i / 2][i % 2]);
          }
          storeTransposed(line + j * 8 * 128, pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]);
        }
      });
      fenceShared();
      __syncwarp();
      if (lane == 0)
        arrive(&stagedIsFull);
    }
  }
  __syncwarp();
  syncCluster(); // No block may end while the other signals it.
#endif
}

} // namespace
} // namespace cgc
