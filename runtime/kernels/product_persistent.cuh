// product and product_norm of many tokens: the persistent kernel. Blocks stay for all tiles; the
// two of a cluster share the copies of their tokens; results are staged, and stored while the next
// tile is multiplied. For product.cu.
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
  /// Warps that multiply; then a warpgroup with one that fetches operands, one that stores, and two
  /// that find what normalises tokens.
  static constexpr int kWarps = kFeatures / 16, kThreads = int(kTile.threads());
  /// Results are stored in boxes of that many tokens and 64 features.
  static constexpr int kBoxTokens = int(kTile.boxTokens());
  static constexpr int kStagedBytes = kTokens * kFeatures * 2;
  static_assert(kThreads == kWarps * 32 + 128 && kTokens % 16 == 0 && kTokens % kBoxTokens == 0 &&
                kBoxTokens % 8 == 0);
  static_assert(kTile.sharedBytes(2) ==
                2 * kStageBytes + kStagedBytes + 1024); // The last to begin at a multiple of it.
  static_assert(sizeof(Moments) == 8 && sizeof(Scale) == 8); // Two are read at a time.
  /// Of the registers of 384 threads, 168 each, what a thread of the last warpgroup keeps, and what
  /// the others have then: 128 * 40 + 256 * 232 = 384 * 168.
  static constexpr int kFewRegisters = 40, kManyRegisters = 232;
};

/// Finds the scales of tokens from their moments in shared memory: a thread for each token, as
/// shared memory and shuffles take hundreds of clocks while the tensor cores read their operands.
template <class T>
__device__ void findScales(const ProductParameters<T> &p, const Moments *moments, int tokens,
                           Scale *scales, int thread, int threads) {
  const int pairs = p.xGroups / 2; // Of groups: 16 bytes.
  for (int t = thread; t < tokens; t += threads) {
    const float4 *const row = reinterpret_cast<const float4 *>(moments) + t * pairs;
    Moments sums{};
#pragma unroll 8
    for (int i = 0, at = thread % pairs; i < pairs; ++i) {
      const float4 two = row[at];
      sums.sum += two.x + two.z;
      sums.squares += two.y + two.w;
      at = at + 1 == pairs ? 0 : at + 1; // Neighbours read other banks.
    }
    scales[t] = scaleOf(p, sums);
  }
}

template <class T, int kTokens, bool kNorm>
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
  // The moments of the tile's tokens are staged; their scales are there; these have been read.
  __shared__ uint64_t momentsAreStaged, scalesAreFound, scalesAreRead;
  __shared__ alignas(16) Scale scales[kNorm ? kTokens : 1];

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
    initBarrier(&momentsAreStaged, 1);
    initBarrier(&scalesAreFound, 2);
    initBarrier(&scalesAreRead, Shape::kWarps);
    fenceBarrierInit();
  }
  releaseSuccessor();
  syncCluster();

  const int steps = (p.depth + kDepthTile - 1) / kDepthTile;
  const auto tilesOf = [](int count, int size) { return (count + size - 1) / size; };
  const int tokenTiles = tilesOf(p.tokens, kTokens),
            featureTiles = tilesOf(p.features, 2 * Shape::kFeatures);
  const int tiles = tokenTiles * featureTiles;
  const int firstTile = int(blockIdx.x) / 2, tileStep = int(gridDim.x) / 2;
  // The smaller operand is read again and again, the larger one once.
  const bool tokensFirst = p.tokens < p.features;
  struct Origin {
    int token, feature;
  };
  const auto originOf = [&](int tile) {
    const int inner = tokensFirst ? tokenTiles : featureTiles;
    const int outer = tile / inner, rest = tile - outer * inner;
    return Origin{(tokensFirst ? rest : outer) * kTokens,
                  ((tokensFirst ? outer : rest) * 2 + rank) * Shape::kFeatures};
  };

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kFewRegisters>();
    if (threadIdx.x == Shape::kWarps * 32) { // Fetches operands.
      const auto copyWeights = [&](int feature, int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        copyTile(memory + stage * Shape::kStageBytes, &p.w, i * kDepthTile, feature, &full[stage]);
      };
      // Of the first tile, which every block has: nobody has used the ring. No more than two, or
      // the first tokens would arrive behind all these bytes.
      const int early = p.wIsConstant ? min(steps, 2) : 0;
      for (int i = 0; i < early; ++i)
        copyWeights(originOf(firstTile).feature, i, i);
      if (p.wIsConstant) { // The blocks together bring all of it near.
        const int boxes = steps * tilesOf(p.features, Shape::kFeatures);
        for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
          prefetchTile(&p.w, box % steps * kDepthTile, box / steps * Shape::kFeatures);
      }
      waitForPredecessor();
      Ring ring{p.stages};
      for (int tile = firstTile; tile < tiles; tile += tileStep) {
        const Origin origin = originOf(tile); // Once: a division in each step would hold it up.
        for (int i = 0; i < steps; ++i, ring.next()) {
          uint8_t *const stage = memory + ring.stage * Shape::kStageBytes;
          if (tile > firstTile || i >= early) {
            waitBarrier(&empty[ring.stage], ring.phase ^ 1);
            copyWeights(origin.feature, i, ring.stage);
          }
          // To the same place of both blocks. The other block's bytes may come before the arrival
          // above, but not before this stage is empty in both.
          copyTileToBoth(stage + Shape::kWeightBytes + rank * (Shape::kTokenBytes / 2), &p.x,
                         i * kDepthTile, origin.token + rank * (kTokens / 2), &full[ring.stage]);
        }
      }
    }
    if (threadIdx.x == Shape::kWarps * 32 + 32) { // Fetches residuals and stores results.
      waitForPredecessor();
      const auto forBoxes = [&](const Origin &origin, auto f) {
        for (int box = 0; box < 2 * kTokens / Shape::kBoxTokens; ++box) {
          const int group = box * Shape::kBoxTokens / kTokens,
                    token = box * Shape::kBoxTokens % kTokens;
          f(staged + box * Shape::kBoxTokens * 128, origin.feature + group * 64,
            origin.token + token);
        }
      };
      const auto prepare = [&](const Origin &origin, uint32_t turn) {
        if constexpr (kNorm) { // Until the scales are found, the moments lie there.
          const int tokens = min(kTokens, p.tokens - origin.token);
          const uint32_t bytes = uint32_t(tokens * p.xGroups) * sizeof(Moments);
          arriveExpecting(&momentsAreStaged, bytes);
          copyBytes(staged, p.xMoments + int64_t(origin.token) * p.xGroups, bytes,
                    &momentsAreStaged);
          waitBarrier(&scalesAreFound, turn & 1);
        }
        if (!p.residual)
          return arrive(&stagedIsFree);
        arriveExpecting(&stagedIsFree, Shape::kStagedBytes);
        forBoxes(origin, [&](uint8_t *box, int feature, int token) {
          copyTile(box, &p.residualTiles, feature, token, &stagedIsFree);
        });
      };
      uint32_t turn = 0;
      if (firstTile < tiles)
        prepare(originOf(firstTile), 0);
      for (int tile = firstTile; tile < tiles; tile += tileStep, ++turn) {
        waitBarrier(&stagedIsFull, turn & 1);
        forBoxes(originOf(tile), [&](uint8_t *box, int feature, int token) {
          storeTile(&p.yTiles, feature, token, box);
        });
        waitStoresRead();
        if (tile + tileStep < tiles)
          prepare(originOf(tile + tileStep), turn + 1);
      }
      waitStores();
    }
    if constexpr (kNorm)
      if (warp >= Shape::kWarps + 2) {
        uint32_t turn = 0;
        for (int tile = firstTile; tile < tiles; tile += tileStep, ++turn) {
          waitBarrier(&momentsAreStaged, turn & 1);
          if (turn > 0)
            waitBarrier(&scalesAreRead, (turn - 1) & 1);
          findScales(p, reinterpret_cast<const Moments *>(staged),
                     min(kTokens, p.tokens - originOf(tile).token), scales,
                     int(threadIdx.x) - (Shape::kWarps + 2) * 32, 64);
          fenceShared(); // Tensor copies may overwrite what it has read.
          __syncwarp();
          if (lane == 0)
            arrive(&scalesAreFound);
        }
      }
  } else {
    growRegisters<Shape::kManyRegisters>();
    const int group = warp / 4;
    waitForPredecessor();
    float sums[kTokens / 2];
    Ring ring{p.stages};
    uint32_t turn = 0;
    for (int tile = firstTile; tile < tiles; tile += tileStep, ++turn) {
      const Origin origin = originOf(tile);
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
      float bias[2] = {}, columnSums[2] = {}; // Of the thread's two rows of sums.
      for (int h = 0; h < 2; ++h)
        if (const int feature = origin.feature + warp * 16 + lane / 4 + h * 8;
            feature < p.features) {
          if (p.bias)
            bias[h] = toFloat(p.bias[feature]);
          if constexpr (kNorm)
            columnSums[h] = p.columnSums[feature];
        }
      wgmmaWait<0>();
      release();
      if constexpr (kNorm)
        waitBarrier(&scalesAreFound, turn & 1);
      waitBarrier(&stagedIsFree, turn & 1);
      // Four matrices of 8 tokens and 8 features: 0 and 1 are features 0-7 and 8-15 of eight
      // tokens, 2 and 3 of the next eight; swizzled, as tensor copies have it.
      uint8_t *const line = staged + group * kTokens * 128 + (lane / 16 * 8 + lane % 8) * 128 +
                            ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
      // What shared memory has for eight tokens and the next: loaded before the results of those
      // before are stored, which no load would pass.
      struct Loaded {
        Pair<T> residual[2][2];
        float4 scales[2]; // Mean and factor of this thread's two tokens of eight.
      };
      const auto load = [&](int j) {
        Loaded loaded;
        if (p.residual)
          loadTransposed(line + j * 8 * 128, loaded.residual[0][0], loaded.residual[0][1],
                         loaded.residual[1][0], loaded.residual[1][1]);
        if constexpr (kNorm)
          for (int i = 0; i < 2; ++i)
            loaded.scales[i] =
                *reinterpret_cast<const float4 *>(scales + (j + i) * 8 + lane % 4 * 2);
        return loaded;
      };
      withActivation<T>(p.activation, [&](auto activation) {
        Loaded loaded = load(0);
#pragma unroll
        for (int j = 0; j < kTokens / 8; j += 2) {
          const Loaded of = loaded;
          if (j + 2 < kTokens / 8)
            loaded = load(j + 2);
          Pair<T> pairs[2][2]; // Of eight tokens and the next: this thread's two, for two features.
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float a = sums[(j + i / 2) * 4 + i % 2 * 2], b = sums[(j + i / 2) * 4 + i % 2 * 2 + 1];
            if constexpr (kNorm) {
              const float4 scale = of.scales[i / 2];
              a = (a - scale.x * columnSums[i % 2]) * scale.y;
              b = (b - scale.z * columnSums[i % 2]) * scale.w;
            }
            Pair<T> &pair = pairs[i / 2][i % 2];
            pair = activatePair<T>(activation, fromFloats<T>(a + bias[i % 2], b + bias[i % 2]));
            if (p.residual)
              pair = __hadd2_rn(pair, of.residual[i / 2][i % 2]);
          }
          storeTransposed(line + j * 8 * 128, pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1]);
        }
      });
      if (p.yMoments) {
        // Features beyond the last add nothing: w, bias and residual are 0 there, and so are
        // results.
        syncThreads(1 + group, 128); // The warpgroup has staged its 64 features.
        const int ownToken = int(threadIdx.x) % 128 / 8, feature = origin.feature + group * 64;
#pragma unroll 1
        for (int t = ownToken; t < kTokens; t += 16) {
          Pairs<T> values = *reinterpret_cast<const Pairs<T> *>(
              swizzledVector(staged + group * kTokens * 128, t, int(threadIdx.x) % 8));
          Moments moments{};
#pragma unroll
          for (int i = 0; i < Pairs<T>::kSize; ++i)
            moments.add(toFloats(values[i]));
          const int64_t token = origin.token + t;
          storeSumOfLanes(p.yMoments + token * p.yGroups + feature / kMomentGroup,
                          token < p.tokens && feature < p.features, moments);
        }
      }
      fenceShared();
      __syncwarp();
      if (lane == 0) {
        arrive(&stagedIsFull);
        if constexpr (kNorm)
          arrive(&scalesAreRead);
      }
    }
  }
  __syncwarp();
  syncCluster(); // No block may end while the other signals it.
#endif
}

} // namespace
} // namespace cgc
