// product and product_norm of many tokens: the persistent kernels. Blocks stay for all tiles; those
// of a cluster share the copies of their operands; results are staged, and stored while the next
// tile is multiplied. For product.cu.
#pragma once

#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/gemm/gemm_common.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

#include <climits>
#include <string>

namespace cgc {
namespace {

/// What a persistent kernel's clusters are. The fewer bytes the L2 cache sends, the less power a
/// product takes; but clusters of eight leave SMs over, as groups of SMs have no multiple of eight.
enum class Clusters {
  Pairs, ///< Two blocks with the same tokens; they take all tiles.
  Wide,  ///< Eight: two rows, of four with the same tokens each. They take the first tokens.
  Beside ///< Pairs, the companion of such a kernel: they take the other tokens.
};

/// Each block has 128 features of its own, in two warpgroups.
template <int kTokens, Clusters kClusters> struct PersistentShape {
  static constexpr ProductTile kTile{"", kPersistentFeatures, kTokens, 1, true};
  static constexpr int kFeatures = kPersistentFeatures;
  /// Blocks of a cluster that have the same tokens, and the same features.
  static constexpr int kAcross = kClusters == Clusters::Wide ? 4 : 2;
  static constexpr int kAlong = kClusters == Clusters::Wide ? 2 : 1;
  static constexpr int kBlocks = kAcross * kAlong;
  /// Rows of a box of an operand: wide clusters and the pairs beside them have the same maps.
  static constexpr int kTokenRows = kClusters == Clusters::Pairs ? kTokens / 2 : kTokens / 4;
  static constexpr int kWeightRows = kClusters == Clusters::Pairs ? kFeatures : kFeatures / 2;
  /// Of these a block copies so many, to all that have them.
  static constexpr int kTokenBoxes = kTokens / kAcross / kTokenRows;
  static constexpr int kWeightBoxes = kFeatures / kAlong / kWeightRows;
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

/// A kernel of wide clusters lets its companion start when it has itself waited: all of what the
/// kernels ahead wrote is in memory then. PTX promises that to who waits, and the companion, whose
/// wait would be for this kernel, does not; but its blocks begin after that, with nothing of it in
/// their caches. It waits for this kernel before it ends, so that whoever waits for the companion
/// waits for both.
template <class T, int kTokens, bool kNorm, Clusters kClusters>
__global__ void __launch_bounds__(PersistentShape<kTokens, kClusters>::kThreads, 1)
    __cluster_dims__(PersistentShape<kTokens, kClusters>::kBlocks, 1, 1)
        productPersistent(const __grid_constant__ ProductParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = PersistentShape<kTokens, kClusters>;
  constexpr bool kWide = kClusters == Clusters::Wide, kBeside = kClusters == Clusters::Beside;
  const ClusterTiles &tiles = kBeside ? p.tilesBeside : p.tiles;
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
  const int rank = int(clusterRank()), across = rank % Shape::kAcross,
            along = rank / Shape::kAcross;
  // The ranks that have this block's tokens, and those that have its features.
  const auto ofTokens = uint16_t(((1 << Shape::kAcross) - 1) << along * Shape::kAcross);
  const auto ofFeatures = uint16_t((1 | 1 << Shape::kAcross * (Shape::kAlong - 1)) << across);
  const bool hasResidual = !kNorm && p.residual; // product_norm has none.
  if (threadIdx.x == 0) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      // All that this block copies to.
      initBarrier(&empty[s], (Shape::kAcross + Shape::kAlong - 1) * Shape::kWarps);
    }
    initBarrier(&stagedIsEmpty, 1);
    initBarrier(&stagedIsReady, 1);
    initBarrier(&firstAreFull, Shape::kWarps * 32);
    initBarrier(&stagedIsFull, Shape::kWarps * 32);
    initBarrier(&momentsAreStaged, 1);
    initBarrier(&endIsPrepared, 64);
    fenceBarrierInit();
  }
  if constexpr (!kWide)
    releaseSuccessor();
  const auto waitForOperands = [] {
    if constexpr (!kBeside)
      waitForPredecessor();
  };

  const int steps = (p.depth + kDepthTile - 1) / kDepthTile;
  const int firstTile = int(blockIdx.x) / Shape::kBlocks,
            tileStep = int(gridDim.x) / Shape::kBlocks;
  struct Origin {
    int token, feature;
  };
  const auto originOf = [&](int tile) {
    const int outer = int(tiles.ofRow.quotient(uint32_t(tile)));
    const int inner = tile - outer * int(tiles.ofRow.divisor);
    const int token = ((p.tokensFirst ? inner : outer) * Shape::kAlong + along) * kTokens;
    return Origin{kBeside ? tiles.firstToken + token : token,
                  ((p.tokensFirst ? outer : inner) * Shape::kAcross + across) * Shape::kFeatures};
  };
  // Calls f with the origin and the turn of each of the block's tiles.
  const auto forTiles = [&](auto f) {
    uint32_t turn = 0;
#pragma unroll 1
    for (int tile = firstTile; tile < tiles.count; tile += tileStep, ++turn)
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
    return !kWide && p.wIsConstant && (p.tokensFirst || tiles.count <= tileStep) ? evictFirst()
                                                                                 : evictNormally();
  };
  const auto tokensOf = [&](const Origin &origin) {
    const int tokens = min(kTokens, p.tokens - origin.token);
    return kWide ? max(tokens, 0) : tokens; // Their last row of tiles may be one of a half.
  };

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kFewRegisters>();
    if (threadIdx.x == Shape::kWarps * 32) { // Fetches operands and residuals.
      const CachePolicy weightPolicy = policyOfWeights();
      const auto copyWeights = [&](int feature, int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        uint8_t *const to = memory + stage * Shape::kStageBytes;
#pragma unroll
        for (int b = 0; b < Shape::kWeightBoxes; ++b) {
          const int row = (along * Shape::kWeightBoxes + b) * Shape::kWeightRows;
          if constexpr (kWide)
            copyTileToAll(to + row * 128, &p.w, i * kDepthTile, feature + row, &full[stage],
                          ofFeatures);
          else
            copyTile(to + row * 128, &p.w, i * kDepthTile, feature + row, &full[stage],
                     weightPolicy);
        }
      };
      // Of the first tile: nobody has used the ring. No more than two, or the first tokens would
      // arrive behind all these bytes.
      const bool hasTile = kClusters == Clusters::Pairs || firstTile < tiles.count;
      const int early = p.wIsConstant && hasTile ? min(steps, 2) : 0;
#pragma unroll 1
      for (int i = 0; i < early; ++i)
        copyWeights(originOf(firstTile).feature, i, i);
      waitForOperands();
      if constexpr (kWide)
        releaseSuccessor();
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
          // To the same place of all blocks that have them. Another block's bytes may come before
          // the arrival above, but not before this stage is empty in all these blocks.
#pragma unroll
          for (int b = 0; b < Shape::kTokenBoxes; ++b) {
            const int row = (across * Shape::kTokenBoxes + b) * Shape::kTokenRows;
            copyTileToAll(stage + Shape::kWeightBytes + row * 128, &p.x, i * kDepthTile,
                          origin.token + row, &full[ring.stage], ofTokens);
          }
          ring.next();
        }
      });
      // No block may end while others signal it.
#pragma unroll 1
      for (int s = 0; s < p.stages; ++s, ring.next())
        waitBarrier(&empty[ring.stage], ring.phase ^ 1);
      if constexpr (kBeside) // For the kernel of wide clusters.
        waitForPredecessor();
    }
    if (threadIdx.x == Shape::kWarps * 32 + 32) { // Fetches moments and stores results.
      waitForOperands();
      forTiles([&](const Origin &origin, uint32_t turn) {
        if constexpr (kNorm) { // Until the scales are found, the moments lie there.
          const uint32_t bytes = uint32_t(tokensOf(origin) * p.xGroups) * sizeof(Moments);
          arriveExpecting(&momentsAreStaged, bytes);
          if (!kWide || bytes > 0)
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
      if (thread == 0 && p.wIsConstant && !kBeside) { // The blocks together bring all of it near.
        const CachePolicy policy = policyOfWeights();
        constexpr int kRows = Shape::kWeightRows;
        const int boxes = steps * ((p.features + kRows - 1) / kRows);
#pragma unroll 1
        for (int box = int(blockIdx.x); box < boxes; box += int(gridDim.x))
          prefetchTile(&p.w, box % steps * kDepthTile, box / steps * kRows, policy);
      }
      if (!p.biasIsConstant)
        waitForOperands();
      forTiles([&](const Origin &origin, uint32_t turn) {
        float of[2] = {}; // Two features for each thread.
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (const int feature = origin.feature + thread + i * 64; p.bias && feature < p.features)
            of[i] = toFloat(kBeside ? __ldcg(p.bias + feature) : p.bias[feature]);
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
    // The blocks that copy to this one, a lane for each: those with its tokens, then the other one
    // with its features.
    const auto copier =
        kWide ? uint32_t(lane < Shape::kAcross ? along * Shape::kAcross + lane
                                               : (1 - along) * Shape::kAcross + across)
              : uint32_t(lane);
    forTiles([&](const Origin &origin, uint32_t turn) {
      const auto release = [&](int stage) {
        if (lane < Shape::kAcross + Shape::kAlong - 1)
          arriveAt(&empty[stage], copier);
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

/// How many clusters of a kernel's launch the GPU has room for at the same time.
inline Result<uint32_t> clustersAtOnce(const void *function, const KernelArguments &a,
                                       uint32_t blocksOfCluster) {
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocksOfCluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocksOfCluster;
  config.blockDim = a.block[0];
  config.dynamicSmemBytes = a.sharedBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  if (const cudaError_t error = cudaOccupancyMaxActiveClusters(&count, function, &config);
      error != cudaSuccess) {
    cudaGetLastError(); // Not for whoever asks next.
    return Status(Code::Device, std::string("cannot ask for how many clusters there is room: ") +
                                    cudaGetErrorString(error));
  }
  if (count < 1)
    return Status(Code::Device, "this GPU, or the part of it, has no room for a cluster of " +
                                    std::to_string(blocksOfCluster) +
                                    " blocks; run the plan on a whole GPU");
  return uint32_t(count);
}

/// The clusters of the kernel of a tile's row.
template <int kTokens>
constexpr Clusters kClustersOf =
    ProductTile{"", kPersistentFeatures, kTokens, 1, true}.hasWideClusters() ? Clusters::Wide
                                                                             : Clusters::Pairs;

template <class T, int kTokens, bool kNorm>
Result<KernelParameters> bindPersistent(const KernelArguments &a) {
  constexpr ProductTile tile{"", kPersistentFeatures, kTokens, 1, true, kNorm};
  constexpr Clusters kClusters = kClustersOf<kTokens>;
  static_assert(kClusters == Clusters::Pairs ||
                PersistentShape<kTokens, kClusters>::kBlocks == kWideClusterBlocks);
  using Shape = PersistentShape<kTokens, kClusters>;
  CGC_ASSIGN_OR_RETURN(
      ProductParameters<T> p,
      (productParameters<T, kNorm>(a, tile, Shape::kWeightRows, Shape::kTokenRows)));
  const auto map = [&](const TensorView &t, int64_t stride) {
    return tileMap(t.data, kDTypeOf<T>, p.tokens, p.features, stride, tile.boxTokens(),
                   a.onlyChecks);
  };
  CGC_ASSIGN_OR_RETURN(p.yTiles, map(a.writes[0], p.yStride));
  if (p.residual) {
    CGC_ASSIGN_OR_RETURN(p.residualTiles, map(a.reads[3], p.residualStride));
  }
  const auto [ofTokens, ofFeatures] = tile.tilesOfPairs(p.tokens, p.features);
  if (ofTokens * ofFeatures > INT_MAX)
    return refuseArguments("there are too many tiles");
  p.tokensFirst = p.tokens < p.features;
  const auto tilesOf = [&](int64_t tokens, int64_t features, int64_t firstToken) {
    return ClusterTiles{int(tokens * features),
                        Divider(std::max(uint32_t(p.tokensFirst ? tokens : features), 1u)),
                        int(firstToken)};
  };
  if constexpr (kClusters == Clusters::Pairs) {
    p.tiles = tilesOf(ofTokens, ofFeatures, 0);
    return KernelParameters(p);
  } else {
    if (a.onlyChecks)
      return KernelParameters(p);
    const auto function = [](auto *kernel) { return reinterpret_cast<const void *>(kernel); };
    CGC_ASSIGN_OR_RETURN(
        const uint32_t atOnce,
        clustersAtOnce(function(&productPersistent<T, kTokens, kNorm, Clusters::Wide>), a,
                       Shape::kBlocks));
    const auto shares = tile.shares(p.tokens, p.features, a.grid[0], atOnce);
    p.tiles = tilesOf(shares.clusterRows, ProductTile::tilesOf(ofFeatures, 2), 0);
    p.tilesBeside = tilesOf(std::max(ofTokens - 2 * shares.clusterRows, int64_t(0)), ofFeatures,
                            shares.clusterRows * 2 * kTokens);
    KernelParameters parameters(p);
    parameters.companion.blocks = 2 * shares.pairs;
    if (p.tilesBeside.count > 0)
      parameters.companion.function =
          function(&productPersistent<T, kTokens, kNorm, Clusters::Beside>);
    return parameters;
  }
}

} // namespace
} // namespace cgc
