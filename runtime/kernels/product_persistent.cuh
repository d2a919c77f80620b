// product and product_norm of many tokens: the persistent kernel. Blocks stay for all tiles; the
// two of a cluster share the copies of their tokens; results are staged, and stored while the next
// tile is multiplied. For product.cu.
#pragma once

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/product_common.cuh"
#include "runtime/kernels/warp_mma.cuh"

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
  /// Warps that multiply; then a warpgroup with one that fetches operands and residuals, one that
  /// fetches moments and stores, and two that find what the end of a tile needs.
  static constexpr int kWarps = kFeatures / 16, kThreads = int(kTile.threads());
  /// Results are stored in boxes of that many tokens and 64 features.
  static constexpr int kBoxTokens = int(kTile.boxTokens());
  static constexpr int kBoxesOfHalf = kTokens / 2 / kBoxTokens; ///< Half of the tokens.
  static constexpr int kStagedBytes = kTokens * kFeatures * 2;
  static_assert(kThreads == kWarps * 32 + 128 && kFeatures == 128 && kTokens % 16 == 0 &&
                kTokens / 2 % kBoxTokens == 0 && kBoxTokens % 8 == 0); // Halves are stored.
  static_assert(kTile.sharedBytes(2) ==
                2 * kStageBytes + kStagedBytes + 1024); // The last to begin at a multiple of it.
  static_assert(sizeof(Moments) == 8);                  // Two are read at a time.
  /// Of the registers of 384 threads, 168 each, what a thread of the last warpgroup keeps, and what
  /// the others have then: 128 * 40 + 256 * 232 = 384 * 168.
  static constexpr int kFewRegisters = 40, kManyRegisters = 232;
};

/// Finds the scales of tokens from their moments in shared memory: a thread for each token, as
/// shared memory and shuffles take hundreds of clocks while the tensor cores read their operands.
template <class T>
__device__ void findScales(const ProductParameters<T> &p, const Moments *moments, int tokens,
                           float *scales, int thread, int threads) {
  const int pairs = p.xGroups / 2; // Of groups: 16 bytes.
  for (int t = thread; t < tokens; t += threads) {
    const float4 *const row = reinterpret_cast<const float4 *>(moments) + t * pairs;
    Moments sums{};
#pragma unroll 8
    for (int i = 0, at = thread % pairs; i < pairs; ++i) {
      sums.addTwo(row[at]);
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
  // Where threads hand over what they have written or read themselves, each of them arrives: a lane
  // for its warp would do, too, but racecheck takes the others' accesses for races then.
  // The staged tile may be overwritten, by its residual; it is ready for results, with its residual
  // if there is one; its first boxes have been written, and all of it.
  __shared__ uint64_t stagedIsEmpty, stagedIsReady, firstAreFull, stagedIsFull;
  // The moments of the tile's tokens are staged; what the end needs of them, and of the tile's
  // features, is there. It has been read when the tile is staged.
  __shared__ uint64_t momentsAreStaged, endIsPrepared;
  __shared__ alignas(8) float scales[kNorm ? kTokens : 1]; // Of tokens; two are read at a time.
  __shared__ float biases[Shape::kFeatures];

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = int(clusterRank());
  const bool hasResidual = !kNorm && p.residual; // product_norm has none.
  if (threadIdx.x == 0) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], 2 * Shape::kWarps); // Both blocks write to both.
    }
    initBarrier(&stagedIsEmpty, 1);
    initBarrier(&stagedIsReady, 1);
    initBarrier(&firstAreFull, Shape::kWarps * 32);
    initBarrier(&stagedIsFull, Shape::kWarps * 32);
    initBarrier(&momentsAreStaged, 1);
    initBarrier(&endIsPrepared, 64);
    fenceBarrierInit();
  }
  releaseSuccessor();

  const int steps = (p.depth + kDepthTile - 1) / kDepthTile;
  const int firstTile = int(blockIdx.x) / 2, tileStep = int(gridDim.x) / 2;
  struct Origin {
    int token, feature;
  };
  const auto originOf = [&](int tile) {
    const int outer = int(p.tilesOfRow.quotient(uint32_t(tile)));
    const int inner = tile - outer * int(p.tilesOfRow.divisor);
    return Origin{(p.tokensFirst ? inner : outer) * kTokens,
                  ((p.tokensFirst ? outer : inner) * 2 + rank) * Shape::kFeatures};
  };
  // Calls f with the origin and the turn of each of the block's tiles.
  const auto forTiles = [&](auto f) {
    uint32_t turn = 0;
#pragma unroll 1
    for (int tile = firstTile; tile < p.tiles; tile += tileStep, ++turn)
      f(originOf(tile), turn);
  };
  // Calls f with a box of the staged tile, its feature and its token; those of the first half of
  // the tokens come first.
  constexpr int kBoxes = 4 * Shape::kBoxesOfHalf;
  const auto withBox = [&](const Origin &origin, int box, auto f) {
    const int half = box / (2 * Shape::kBoxesOfHalf), ofHalf = box % (2 * Shape::kBoxesOfHalf);
    const int group = ofHalf / Shape::kBoxesOfHalf;
    const int token =
        (half * Shape::kBoxesOfHalf + ofHalf % Shape::kBoxesOfHalf) * Shape::kBoxTokens;
    f(staged + (group * kTokens + token) * 128, origin.feature + group * 64, origin.token + token);
  };
  meetInCluster();
  // No other kernel reads weights, so that they make room first; unless they are what this one
  // reads again and again.
  const auto policyOfWeights = [&] {
    return p.wIsConstant && (p.tokensFirst || p.tiles <= tileStep) ? evictFirst() : evictNormally();
  };
  const auto tokensOf = [&](const Origin &origin) { return min(kTokens, p.tokens - origin.token); };

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kFewRegisters>();
    if (threadIdx.x == Shape::kWarps * 32) { // Fetches operands and residuals.
      const CachePolicy weightPolicy = policyOfWeights();
      const auto copyWeights = [&](int feature, int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        copyTile(memory + stage * Shape::kStageBytes, &p.w, i * kDepthTile, feature, &full[stage],
                 weightPolicy);
      };
      // Of the first tile, which every block has: nobody has used the ring. No more than two, or
      // the first tokens would arrive behind all these bytes.
      const int early = p.wIsConstant ? min(steps, 2) : 0;
#pragma unroll 1
      for (int i = 0; i < early; ++i)
        copyWeights(originOf(firstTile).feature, i, i);
      waitForPredecessor();
      Ring ring{p.stages};
      forTiles([&](const Origin &origin, uint32_t turn) {
        int box = hasResidual ? 0 : kBoxes;
#pragma unroll 1
        for (int i = 0; i < steps || box < kBoxes; ++i) {
          // A box of the residual at a time: operands would wait behind all of it. Not before the
          // products have begun, when the staged tile may still be stored.
          if (box < kBoxes && i > min(steps - 1, p.stages)) {
            if (box == 0) {
              waitBarrier(&stagedIsEmpty, turn & 1);
              arriveExpecting(&stagedIsReady, Shape::kStagedBytes);
            }
            withBox(origin, box++, [&](uint8_t *to, int feature, int token) {
              copyTile(to, &p.residualTiles, feature, token, &stagedIsReady);
            });
          }
          if (i >= steps)
            continue;
          uint8_t *const stage = memory + ring.stage * Shape::kStageBytes;
          if (turn > 0 || i >= early) {
            waitBarrier(&empty[ring.stage], ring.phase ^ 1);
            copyWeights(origin.feature, i, ring.stage);
          }
          // To the same place of both blocks. The other block's bytes may come before the arrival
          // above, but not before this stage is empty in both.
          copyTileToBoth(stage + Shape::kWeightBytes + rank * (Shape::kTokenBytes / 2), &p.x,
                         i * kDepthTile, origin.token + rank * (kTokens / 2), &full[ring.stage]);
          ring.next();
        }
      });
      // No block may end while the other signals it.
#pragma unroll 1
      for (int s = 0; s < p.stages; ++s, ring.next())
        waitBarrier(&empty[ring.stage], ring.phase ^ 1);
    }
    if (threadIdx.x == Shape::kWarps * 32 + 32) { // Fetches moments and stores results.
      waitForPredecessor();
      forTiles([&](const Origin &origin, uint32_t turn) {
        if constexpr (kNorm) { // Until the scales are found, the moments lie there.
          const uint32_t bytes = uint32_t(tokensOf(origin) * p.xGroups) * sizeof(Moments);
          arriveExpecting(&momentsAreStaged, bytes);
          copyBytes(staged, p.xMoments + int64_t(origin.token) * p.xGroups, bytes,
                    &momentsAreStaged);
          waitBarrier(&endIsPrepared, turn & 1);
        }
        arrive(hasResidual ? &stagedIsEmpty : &stagedIsReady);
#pragma unroll 1
        for (int box = 0; box < kBoxes; ++box) {
          waitBarrier(box < kBoxes / 2 ? &firstAreFull : &stagedIsFull, turn & 1);
          withBox(origin, box, [&](uint8_t *from, int feature, int token) {
            storeTile(&p.yTiles, feature, token, from);
          });
        }
        waitStoresRead();
      });
    }
    if (warp >= Shape::kWarps + 2) { // Find what the ends need, while others multiply.
      const int thread = int(threadIdx.x) - (Shape::kWarps + 2) * 32;
      if (thread == 0 && p.wIsConstant) { // The blocks together bring all of it near.
        const CachePolicy policy = policyOfWeights();
        const int boxes = steps * ((p.features + Shape::kFeatures - 1) / Shape::kFeatures);
#pragma unroll 1
        for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
          prefetchTile(&p.w, box % steps * kDepthTile, box / steps * Shape::kFeatures, policy);
      }
      if (!p.biasIsConstant)
        waitForPredecessor();
      forTiles([&](const Origin &origin, uint32_t turn) {
        float of[2] = {}; // Two features for each thread.
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (const int feature = origin.feature + thread + i * 64; p.bias && feature < p.features)
            of[i] = toFloat(p.bias[feature]);
        if (turn > 0) // The end before has read them.
          waitBarrier(&stagedIsFull, (turn - 1) & 1);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          biases[thread + i * 64] = of[i];
        if constexpr (kNorm) {
          waitBarrier(&momentsAreStaged, turn & 1);
          findScales(p, reinterpret_cast<const Moments *>(staged), tokensOf(origin), scales, thread,
                     64);
          fenceShared(); // Tensor copies may overwrite what it has read.
        }
        arrive(&endIsPrepared);
      });
    }
  } else {
    // Their operands come after the kernels ahead have ended, and so does all that they write.
    growRegisters<Shape::kManyRegisters>();
    const int group = warp / 4;
    float sums[kTokens / 2];
    // The descriptors of the first stage.
    const uint64_t w = sameInWarp(tileDescriptor(memory + group * 64 * kDepthTile * 2));
    const uint64_t x = tileDescriptor(memory + Shape::kWeightBytes);
    Ring ring{p.stages};
    forTiles([&](const Origin &origin, uint32_t turn) {
      const auto release = [&](int stage) {
        if (lane < 2)
          arriveAt(&empty[stage], uint32_t(lane));
      };
      release(
          multiplyStages<T, kTokens, Shape::kStageBytes>(sums, ring, full, steps, w, x, release));
      waitBarrier(&endIsPrepared, turn & 1);
      const float bias[2] = {biases[warp * 16 + lane / 4], biases[warp * 16 + lane / 4 + 8]};
      waitBarrier(&stagedIsReady, turn & 1);
      // Four matrices of 8 tokens and 8 features: 0 and 1 are features 0-7 and 8-15 of eight
      // tokens, 2 and 3 of the next eight; swizzled, as tensor copies have it. Few instructions for
      // each of them: they are unrolled, and the first end has to fetch them.
      uint8_t *const line = staged + group * kTokens * 128 + (lane / 16 * 8 + lane % 8) * 128 +
                            ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
      // What shared memory has for eight tokens and the next: loaded before the results of those
      // before are stored, which no load would pass.
      struct Loaded {
        Pair<T> residual[2][2];
        float2 scales[2]; // Of this thread's two tokens of eight.
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
        for (int j = 0; j < kTokens / 8; j += 2) {
          const Loaded of = loaded;
          if (j + 2 < kTokens / 8)
            loaded = load(j + 2);
          Pair<T> pairs[2][2]; // Of eight tokens and the next: this thread's two, for two features.
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float a = sums[(j + i / 2) * 4 + i % 2 * 2], b = sums[(j + i / 2) * 4 + i % 2 * 2 + 1];
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
          if (j * 8 < kTokens / 2 && (j + 2) * 8 >= kTokens / 2)
            arriveStaged(&firstAreFull);
        }
      });
      if (p.yMoments) {
        syncThreads(1 + group, 128); // The warpgroup has staged its 64 features.
        // A thread for each token: shuffles would take longer.
        const int feature = origin.feature + group * 64;
        const int inside = min(8, (p.features - feature) / 8); // Vectors with features that are.
        const int tokens = inside > 0 ? tokensOf(origin) : 0;
#pragma unroll 1
        for (int t = int(threadIdx.x) % 128; t < tokens; t += 128) {
          Moments moments{};
#pragma unroll 4
          for (int v = 0; v < inside; ++v) {
            Pairs<T> values = *reinterpret_cast<const Pairs<T> *>(
                swizzledVector(staged + group * kTokens * 128, t, v));
#pragma unroll
            for (int i = 0; i < Pairs<T>::kSize; ++i)
              moments.add(toFloats(values[i]));
          }
          p.yMoments[int64_t(origin.token + t) * p.yGroups + feature / kMomentGroup] = moments;
        }
      }
      arriveStaged(&stagedIsFull);
    });
  }
#endif
}

} // namespace
} // namespace cgc
