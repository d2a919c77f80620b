// product and product_norm: the kernel. A producer warp copies tiles of weights and tokens to
// shared memory, a warpgroup for each 64 features multiplies them; the result is turned in shared
// memory and leaves token by token. The loops of the producer, over the depth and over the tokens
// of the end are not unrolled: in a chain of kernels, fetching instructions takes longer than
// executing them. Also what the persistent kernel has in common with it: parameters, the ring,
// shifts, and bind. For product.cu.
#pragma once

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/arguments.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/hopper.cuh"
#include "runtime/kernels/moments.cuh"
#include "runtime/kernels/product.h"
#include "runtime/kernels/tensor_map.h"
#include "runtime/kernels/wgmma.cuh"

#include <climits>

namespace cgc {
namespace {

using namespace device;

template <class T> struct ProductParameters {
  CUtensorMap w, x;
  CUtensorMap yTiles, residualTiles; ///< Of persistent ones, in their boxes.
  const T *bias, *residual;          ///< Null where there is none.
  T *y;
  int64_t residualStride, yStride; ///< Between rows, in elements.
  Moments *yMoments;               ///< [tokens, yGroups]; null if nobody asks for them.
  const Moments *xMoments;         ///< [tokens, xGroups]; of product_norm, like the next two.
  const float *columnSums;         ///< Of w.
  float eps, perColumn;            ///< perColumn is 1 / depth.
  int tokens, features, depth, stages;
  int xGroups, yGroups; ///< momentGroups() of depth and of features.
  Activation activation;
  /// Of persistent ones: all tiles, and how many lie in a row. The smaller operand is read again
  /// and again, the larger one once.
  int tiles;
  Divider tilesOfRow;
  bool tokensFirst; ///< A row is one of tokens.
  /// Nothing writes w, or bias and columnSums, while the plan runs.
  bool wIsConstant, vectorsAreConstant;
};

/// Columns of a stage: rows of 128 bytes.
constexpr int kDepthTile = kProductDepth;

template <int kFeatures, int kTokens, int kSplit, bool kNorm> struct ProductShape {
  static constexpr ProductTile kTile{"", kFeatures, kTokens, kSplit, false, kNorm};
  static constexpr int kWeightBytes = kFeatures * kDepthTile * 2;
  static constexpr int kStageBytes = kWeightBytes + kTokens * kDepthTile * 2;
  static constexpr int kGroups = kFeatures / 64;
  /// Threads that multiply, then the producer warp, then one that helps to find shifts.
  static constexpr int kConsumers = kGroups * 128, kThreads = int(kTile.threads());
  static constexpr int kMostGroups = int(kTile.mostGroups());
  static constexpr int kHandedBytes = int(kTile.handedBytes());
  /// Rows in which results are staged; the padding spreads them over the banks.
  static constexpr int kHalfPitch = 64 + 8;
};

/// Where in the ring of stages a thread is.
struct Ring {
  int stages, stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// Registers of a thread with which `blocks` blocks fit on an SM: each of its four parts has 16384
/// for its share of the warps.
constexpr int maxRegisters(int threads, int blocks) {
  const int warpsOfPart = (threads / 32 * blocks + 3) / 4;
  return std::min(16384 / (32 * warpsOfPart) / 8 * 8, 232);
}

/// Stores eight results of one token, given before activation and residual. All lanes of a warp
/// call it; eight lanes have 64 features of one token. Those that are not `inside` have none.
template <class T>
__device__ void finish(const ProductParameters<T> &p, bool inside, int64_t token, int feature,
                       Pairs<T> values) {
  Pairs<T> more;
  if (inside && p.residual)
    more = loadPairs(p.residual + token * p.residualStride + feature);
  withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      values[i] = activatePair<T>(activation, values[i]);
  });
  if (p.residual) {
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      values[i] = __hadd2_rn(values[i], more[i]);
  }
  if (inside)
    storePairs(p.y + token * p.yStride + feature, values);
  if (p.yMoments) {
    Moments moments{};
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      moments.add(inside ? toFloats(values[i]) : float2{});
    storeSumOfLanes(p.yMoments + token * p.yGroups + feature / kMomentGroup, inside, moments);
  }
}

/// What normalises a token's sum: it is sum * factor - shift * the sum of the weights' column.
struct alignas(8) Shift {
  float shift, factor;
  /// With the bias of a feature and the sum of its column.
  __device__ float apply(float sum, float bias, float columnSum) const {
    return fmaf(sum, factor, fmaf(-shift, columnSum, bias));
  }
};
/// From the moments of a whole token.
template <class T> __device__ Shift shiftOf(const ProductParameters<T> &p, const Moments &of) {
  const float mean = of.sum * p.perColumn, variance = of.squares * p.perColumn - mean * mean;
  const float factor = rsqrtf(fmaxf(variance, 0) + p.eps);
  return {mean * factor, factor};
}
/// From the moments of a token's groups: two at a time, 16 bytes, and as many on their way as there
/// mostly are; one after the other where their number is odd.
template <class T> __device__ Shift shiftOf(const ProductParameters<T> &p, int64_t token) {
  constexpr int kAtOnce = 8;
  const Moments *const row = p.xMoments + token * p.xGroups;
  Moments all{};
  const int pairs = p.xGroups % 2 == 0 ? p.xGroups / 2 : 0;
#pragma unroll 1
  for (int first = 0; first < pairs; first += kAtOnce) {
    float4 of[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      of[i] = first + i < pairs ? reinterpret_cast<const float4 *>(row)[first + i] : float4{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      all.addTwo(of[i]);
  }
#pragma unroll 1
  for (int g = 2 * pairs; g < p.xGroups; ++g) {
    all.sum += row[g].sum;
    all.squares += row[g].squares;
  }
  return shiftOf(p, all);
}

/// Multiplies the operands of `steps` stages of the ring; `w` and `x` describe those of a warpgroup
/// in stage 0. Calls release with each stage that has been read but the last, which it returns.
template <class T, int kTokens, int kStageBytes, class F>
__device__ int multiplyStages(float (&sums)[kTokens / 2], Ring &ring, uint64_t *full, int steps,
                              uint64_t w, uint64_t x, F release) {
  int last = 0; // The stage of the iteration before.
#pragma unroll 1
  for (int i = 0; i < steps; ++i, ring.next()) {
    waitBarrier(&full[ring.stage], ring.phase);
    const uint64_t wOf = descriptorAt(w, ring.stage * kStageBytes);
    const uint64_t xOf = descriptorAt(x, ring.stage * kStageBytes);
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < kDepthTile / 16; ++k)
      Wgmma<T, kTokens>::run(sums, descriptorAt(wOf, k * 32), descriptorAt(xOf, k * 32), i + k > 0);
    wgmmaCommit();
    wgmmaWait<1>();
    if (i > 0)
      release(last);
    last = ring.stage;
  }
  wgmmaWait<0>();
  return last;
}

template <class T, int kFeatures, int kTokens, int kSplit, int kBlocks, bool kNorm>
__global__ void __maxnreg__(maxRegisters(ProductShape<kFeatures, kTokens, kSplit, kNorm>::kThreads,
                                         kBlocks)) __cluster_dims__(kSplit, 1, 1)
    product(const __grid_constant__ ProductParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = ProductShape<kFeatures, kTokens, kSplit, kNorm>;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  __shared__ uint64_t full[kProductMaxStages], empty[kProductMaxStages];
  __shared__ Shift shifts[kNorm ? kTokens : 1];

  const int rank = kSplit > 1 ? int(clusterRank()) : 0;
  const int feature0 = int(blockIdx.x) / kSplit * kFeatures, token0 = int(blockIdx.y) * kTokens;
  const int tokens = min(kTokens, p.tokens - token0);
  const int blocks = (p.depth + kDepthTile - 1) / kDepthTile;
  const int first = blocks * rank / kSplit, count = blocks * (rank + 1) / kSplit - first;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kConsumerWarps = Shape::kConsumers / 32; // The next one is the producer.
  if (threadIdx.x == Shape::kConsumers) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], kConsumerWarps);
    }
    fenceBarrierInit();
  }
  releaseSuccessor();
  __syncthreads();

  const auto leaveSplit = [] { // Without sums to hand over.
    if constexpr (kSplit > 1) {
      __syncwarp();
      meetInCluster();
      meetInCluster();
    }
  };
  if (warp == kConsumerWarps) {
    if (lane == 0) {
      // No other kernel reads weights, and the blocks that share them do so at the same time.
      const CachePolicy weightPolicy = p.wIsConstant ? evictFirst() : evictNormally();
      const auto copyWeights = [&](int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        copyTile(memory + stage * Shape::kStageBytes, &p.w, (first + i) * kDepthTile, feature0,
                 &full[stage], weightPolicy);
      };
      const auto copyTokens = [&](int i, int stage) {
        copyTile(memory + stage * Shape::kStageBytes + Shape::kWeightBytes, &p.x,
                 (first + i) * kDepthTile, token0, &full[stage]);
      };
      const int early = count < p.stages ? count : p.stages;
      if (!p.wIsConstant)
        waitForPredecessor();
#pragma unroll 1
      for (int i = 0; i < early; ++i)
        copyWeights(i, i);
      waitForPredecessor();
      Ring ring{p.stages};
#pragma unroll 1
      for (int i = 0; i < count; ++i, ring.next()) {
        if (i >= early) {
          waitBarrier(&empty[ring.stage], ring.phase ^ 1);
          copyWeights(i, ring.stage);
        }
        copyTokens(i, ring.stage);
      }
    }
    return leaveSplit();
  }

  // The tokens that this block finishes: of a split, its groups of eight.
  constexpr int kMostGroups = Shape::kMostGroups;
  const auto firstGroupOf = [](int rank) { return kTokens / 8 * rank / kSplit; };
  const int firstGroup = firstGroupOf(rank);
  const int ownTokens = min(firstGroupOf(rank + 1) * 8, tokens) - firstGroup * 8;
  // How threads finish: vectors of eight features, the same ones of several tokens.
  const int group = warp / 4;
  constexpr int kVectors = 64 / 8, kTokenStep = 128 / kVectors;
  const int ownVector = int(threadIdx.x) % kVectors, ownToken = int(threadIdx.x) % 128 / kVectors;
  const int ownFeature = feature0 + group * 64 + ownVector * 8;

  // What the end needs is on its way before the products.
  const int row = group * 64 + warp % 4 * 16 + lane / 4; // Of sums, and row + 8.
  float bias[2] = {}, columnSums[2] = {};
  if (!p.vectorsAreConstant)
    waitForPredecessor();
  for (int h = 0; h < 2; ++h)
    if (const int feature = feature0 + row + h * 8; warp < kConsumerWarps && feature < p.features) {
      if (p.bias)
        bias[h] = toFloat(p.bias[feature]);
      if constexpr (kNorm)
        columnSums[h] = p.columnSums[feature];
    }
  // The end reads what other kernels wrote, too, and overwrites what they may have read.
  waitForPredecessor();
  if constexpr (kNorm) {
    const bool helps = warp > kConsumerWarps;
#pragma unroll 1
    for (int t = int(threadIdx.x) - (helps ? 32 : 0); t < tokens; t += Shape::kConsumers + 32)
      shifts[t] = shiftOf(p, token0 + t);
    if (helps) {
      syncThreads(1, Shape::kConsumers + 32);
      return leaveSplit();
    }
  }

  float sums[kTokens / 2];
  // The descriptors of the first stage.
  const uint64_t w = sameInWarp(tileDescriptor(memory + group * 64 * kDepthTile * 2));
  const uint64_t x = tileDescriptor(memory + Shape::kWeightBytes);
  Ring ring{p.stages};
  multiplyStages<T, kTokens, Shape::kStageBytes>(sums, ring, full, count, w, x, [&](int stage) {
    if (lane == 0)
      arrive(&empty[stage]);
  });
  // All tiles have been read: their memory is used again. The shifts are there.
  syncThreads(1, Shape::kConsumers + (kNorm ? 32 : 0));

  // What the threads finish: of a split, what all blocks have for the same place, in their order.
  float own[4 * kMostGroups];
  if constexpr (kSplit == 1) {
#pragma unroll
    for (int i = 0; i < 4 * kMostGroups; ++i)
      own[i] = sums[i];
  } else {
    float4 *const handed = reinterpret_cast<float4 *>(memory) + threadIdx.x;
    constexpr int kFromPitch = kMostGroups * Shape::kConsumers;
    meetInCluster(); // All blocks have read their tiles.

    // To the own block, too: without a branch for each there is half as much code.
#pragma unroll
    for (int r = 0; r < kSplit; ++r) {
      const uint32_t to = addressInBlock(handed + rank * kFromPitch, uint32_t(r));
#pragma unroll
      for (int j = firstGroupOf(r); j < firstGroupOf(r + 1); ++j)
        storeToBlock(to + (j - firstGroupOf(r)) * Shape::kConsumers * 16,
                     {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]});
    }
    syncCluster(); // All sums have been handed over.
#pragma unroll
    for (int g = 0; g < kMostGroups; ++g) {
      float4 all = handed[g * Shape::kConsumers];
#pragma unroll
      for (int r = 1; r < kSplit; ++r) {
        const float4 part = handed[r * kFromPitch + g * Shape::kConsumers];
        all = {all.x + part.x, all.y + part.y, all.z + part.z, all.w + part.w};
      }
      own[4 * g] = all.x;
      own[4 * g + 1] = all.y;
      own[4 * g + 2] = all.z;
      own[4 * g + 3] = all.w;
    }
  }

  T *const staged = reinterpret_cast<T *>(memory + Shape::kHandedBytes) +
                    group * kMostGroups * 8 * Shape::kHalfPitch;
  // Matrices 0 and 1 are features 0-7 and 8-15 of one group of eight tokens, 2 and 3 of the next.
  const int matrix = lane / 8;
  T *const line =
      staged + (matrix / 2 * 8 + lane % 8) * Shape::kHalfPitch + warp % 4 * 16 + matrix % 2 * 8;
  // Of eight tokens: this thread's two, for two features, as two pairs.
  const auto results = [&](int g, uint32_t(&pairs)[2]) {
    float a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = own[4 * g + i];
    if constexpr (kNorm) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Shift shift = shifts[min((firstGroup + g) * 8, kTokens - 8) + lane % 4 * 2 + i];
#pragma unroll
        for (int h = 0; h < 2; ++h)
          a[2 * h + i] = shift.apply(a[2 * h + i], bias[h], columnSums[h]);
      }
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
  for (int g = 0; g < kMostGroups; g += 2) {
    uint32_t one[2], two[2];
    results(g, one);
    if (g + 1 < kMostGroups) {
      results(g + 1, two);
      storeTransposed(line + g * 8 * Shape::kHalfPitch, one[0], one[1], two[0], two[1]);
    } else { // An odd last group has nowhere to put a second half: it stores the first one twice.
      storeTransposed(staged + (g * 8 + lane % 8) * Shape::kHalfPitch + warp % 4 * 16 +
                          matrix % 2 * 8,
                      one[0], one[1], one[0], one[1]);
    }
  }
  syncThreads(2 + group, 128);

  // Whole warps go on together.
#pragma unroll 1
  for (int t = ownToken; t < kMostGroups * 8; t += kTokenStep)
    finish(p, t < ownTokens && ownFeature < p.features, token0 + firstGroup * 8 + t, ownFeature,
           loadPairs(staged + t * Shape::kHalfPitch + ownVector * 8));
#endif
}

/// Where the rows of a matrix of 16-bit floats begin, if tensor copies and 16-byte accesses can
/// have it: dense rows, 16-byte aligned.
inline std::optional<int64_t> rowStrideOf(const TensorView &matrix, DType dtype, int64_t rows,
                                          int64_t columns) {
  if (!matrix.data || matrix.dtype != dtype || matrix.sizes.size() != 2 ||
      matrix.sizes[0] != rows || matrix.sizes[1] != columns ||
      reinterpret_cast<uintptr_t>(matrix.data) % 16 != 0)
    return std::nullopt;
  if (matrix.strides.empty())
    return columns;
  if (matrix.strides[1] != 1 || matrix.strides[0] < columns || matrix.strides[0] % 8 != 0)
    return std::nullopt;
  return matrix.strides[0];
}

template <class T, int kFeatures, int kTokens, int kSplit, bool kNorm, bool kPersistent = false>
Result<KernelParameters> bindProduct(const KernelArguments &a) {
  constexpr ProductTile tile{"", kFeatures, kTokens, kSplit, kPersistent, kNorm};
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t tokens = a.ints[0], features = a.ints[1], depth = a.ints[2], kind = a.ints[3];
  const int64_t most = int64_t(1) << 30;
  if (tokens < 1 || features < 8 || depth < 8 || tokens > most || features > most || depth > most ||
      features % 8 != 0 || depth % 8 != 0)
    return refuseArguments("features and depth have to be positive multiples of 8");
  if (kind < 0 || kind >= kNumActivations)
    return refuseArguments("there is no such activation");
  if (!tile.takes(depth))
    return refuseArguments(
        kSplit > 1 ? "depth has to give each block of the split 64 columns or the rest"
                   : "a persistent kernel normalises depths of an even number of groups up to 32");
  const uint32_t stages = tile.stagesIn(a.sharedBytes);
  // Persistent kernels take any even number of blocks, up to two for each tile of a pair.
  const auto grid = tile.grid(tokens, features, a.grid[0]);
  if (a.grid[0] == 0 || !std::ranges::equal(a.grid, grid) || a.block[0] != tile.threads() ||
      a.block[1] != 1 || a.block[2] != 1 || stages < 2)
    return refuseArguments("the launch is not that of the tile");
  const TensorView &x = a.reads[0], &w = a.reads[1], &bias = a.reads[2], &residual = a.reads[3];
  const auto xStride = rowStrideOf(x, dtype, tokens, depth);
  const auto wStride = rowStrideOf(w, dtype, features, depth);
  const auto yStride = rowStrideOf(a.writes[0], dtype, tokens, features);
  const auto residualStride =
      residual.data ? rowStrideOf(residual, dtype, tokens, features) : std::optional<int64_t>(0);
  if (!xStride || !wStride || !yStride || !residualStride)
    return refuseArguments("x [tokens, depth], w [features, depth], residual and y [tokens, "
                           "features] need dense rows at multiples of 16 bytes");
  if (!isAbsentOrDenseOf(bias, dtype, features) || reinterpret_cast<uintptr_t>(bias.data) % 16 != 0)
    return refuseArguments("bias has to be dense, with one element for each feature");
  const TensorView &yMoments = a.writes[1];
  if (yMoments.data && !isMomentsOf(yMoments, tokens, features))
    return refuseArguments("moments have to be dense, two f32 for each 64 features of a token");
  if constexpr (kNorm)
    if (!isDenseOf(a.reads[4], DType::F32, features) ||
        reinterpret_cast<uintptr_t>(a.reads[4].data) % 16 != 0 ||
        !isMomentsOf(a.reads[5], tokens, depth) ||
        reinterpret_cast<uintptr_t>(a.reads[5].data) % 16 != 0)
      return refuseArguments("column_sums has to be dense, one f32 for each feature, and moments, "
                             "two for each 64 columns of a token");
  ProductParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.w,
                       tileMap(w.data, dtype, features, depth, *wStride, kFeatures, a.onlyChecks));
  CGC_ASSIGN_OR_RETURN(p.x, tileMap(x.data, dtype, tokens, depth, *xStride,
                                    kPersistent ? kTokens / 2 : kTokens, a.onlyChecks));
  if constexpr (kPersistent) {
    const auto map = [&](const TensorView &t, int64_t stride) {
      return tileMap(t.data, dtype, tokens, features, stride, tile.boxTokens(), a.onlyChecks);
    };
    CGC_ASSIGN_OR_RETURN(p.yTiles, map(a.writes[0], *yStride));
    const auto [ofTokens, ofFeatures] = tile.tilesOfPairs(tokens, features);
    if (ofTokens * ofFeatures > INT_MAX)
      return refuseArguments("there are too many tiles");
    p.tokensFirst = tokens < features;
    p.tilesOfRow = Divider(uint32_t(p.tokensFirst ? ofTokens : ofFeatures));
    p.tiles = int(ofTokens * ofFeatures);
    if (residual.data) {
      CGC_ASSIGN_OR_RETURN(p.residualTiles, map(residual, *residualStride));
    }
  }
  p.bias = static_cast<const T *>(bias.data);
  p.residual = static_cast<const T *>(residual.data);
  p.y = static_cast<T *>(a.writes[0].data);
  p.residualStride = *residualStride;
  p.yStride = *yStride;
  p.tokens = int(tokens);
  p.features = int(features);
  p.depth = int(depth);
  p.stages = int(stages);
  p.xGroups = momentGroups(depth);
  p.yGroups = momentGroups(features);
  p.activation = Activation(kind);
  p.yMoments = static_cast<Moments *>(yMoments.data);
  p.wIsConstant = a.constantReads >> 1 & 1;
  p.vectorsAreConstant = !bias.data || (a.constantReads >> 2 & 1);
  if constexpr (kNorm) {
    p.columnSums = static_cast<const float *>(a.reads[4].data);
    p.xMoments = static_cast<const Moments *>(a.reads[5].data);
    p.eps = static_cast<float>(a.floats[0]);
    p.perColumn = 1.0f / static_cast<float>(depth);
    p.vectorsAreConstant &= a.constantReads >> 4 & 1;
  }
  return KernelParameters(p);
}

} // namespace
} // namespace cgc
