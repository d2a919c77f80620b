// product and product_norm: the kernel with a block, or the cluster of a split, for each tile. A
// producer warp copies tiles of weights and tokens to shared memory, a warpgroup for each 64
// features multiplies them; the result is turned in shared memory and leaves token by token. The
// loops of the producer, over the depth and over the tokens of the end are not unrolled: in a chain
// of kernels, fetching instructions takes longer than executing them. For product.cu.
#pragma once

#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/gemm/gemm_common.cuh"

namespace cgc {
namespace {

template <int kFeatures, int kTokens, int kSplit, bool kNorm> struct ProductShape {
  static constexpr ProductTile kTile{"", kFeatures, kTokens, kSplit, false, kNorm};
  static constexpr int kWeightBytes = kFeatures * kDepthTile * 2;
  static constexpr int kStageBytes = kWeightBytes + kTokens * kDepthTile * 2;
  static constexpr int kGroups = kFeatures / 64;
  /// Threads that multiply, then the producer warp, then one that helps to find scales.
  static constexpr int kConsumers = kGroups * 128, kThreads = int(kTile.threads());
  static constexpr int kMostGroups = int(kTile.mostGroups());
  static constexpr int kHandedBytes = int(kTile.handedBytes());
  /// Rows in which results are staged; the padding spreads them over the banks.
  static constexpr int kHalfPitch = 64 + 8;
};

/// Registers of a thread with which `blocks` blocks fit on an SM: each of its four parts has 16384
/// for its share of the warps.
constexpr int maxRegisters(int threads, int blocks) {
  const int warpsOfPart = (threads / 32 * blocks + 3) / 4;
  return std::min(16384 / (32 * warpsOfPart) / 8 * 8, 232);
}

/// Stores eight results of one token, given before activation and residual, of which product_norm
/// has none. All lanes of a warp call it; eight lanes have 64 features of one token. Those that are
/// not `inside` have none.
template <bool kNorm, class T>
__device__ void finish(const ProductParameters<T> &p, bool inside, int64_t token, int feature,
                       Pairs<T> values) {
  const bool hasResidual = !kNorm && p.residual;
  Pairs<T> more;
  if (inside && hasResidual)
    more = loadPairs(p.residual + token * p.residualStride + feature);
  withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      values[i] = activatePair<T>(activation, values[i]);
  });
  if (hasResidual) {
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
  __shared__ alignas(8) float scales[kNorm ? kTokens : 1]; // Of tokens; two are read at a time.

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
  float bias[2] = {};
  if (!p.biasIsConstant)
    waitForPredecessor();
  for (int h = 0; h < 2; ++h)
    if (const int feature = feature0 + row + h * 8;
        p.bias && warp < kConsumerWarps && feature < p.features)
      bias[h] = toFloat(p.bias[feature]);
  // The end reads what other kernels wrote, too, and overwrites what they may have read.
  waitForPredecessor();
  if constexpr (kNorm) {
    const bool helps = warp > kConsumerWarps;
#pragma unroll 1
    for (int t = int(threadIdx.x) - (helps ? 32 : 0); t < tokens; t += Shape::kConsumers + 32)
      scales[t] = scaleOf(p, token0 + t);
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
  // All tiles have been read: their memory is used again. The scales are there.
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
      const float2 two = *reinterpret_cast<const float2 *>(
          scales + min((firstGroup + g) * 8, kTokens - 8) + lane % 4 * 2);
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
    finish<kNorm>(p, t < ownTokens && ownFeature < p.features, token0 + firstGroup * 8 + t,
                  ownFeature, loadPairs(staged + t * Shape::kHalfPitch + ownVector * 8));
#endif
}

template <class T, int kFeatures, int kTokens, int kSplit, bool kNorm>
Result<KernelParameters> bindProduct(const KernelArguments &a) {
  constexpr ProductTile tile{"", kFeatures, kTokens, kSplit, false, kNorm};
  CGC_ASSIGN_OR_RETURN(const ProductParameters<T> p,
                       (productParameters<T, kNorm>(a, tile, kFeatures, kTokens)));
  return KernelParameters(p);
}

} // namespace
} // namespace cgc
