// gemm and gemm_norm, the kernels that are not persistent: one CTA, or one split-K cluster, for
// each output tile. A producer warp loads tiles of W and X into a ring of shared memory by TMA, a
// consumer warpgroup for each 64 of N multiplies them, and the epilogue transposes the result in
// shared memory and stores it row by row. The loops of the producer, of the mainloop and over the
// rows of the epilogue are not unrolled: in a chain of kernels, fetching instructions takes longer
// than executing them. Included by gemm_instances.cuh.
#pragma once

#include "runtime/kernels/gemm/gemm_epilogue.cuh"

namespace cgc {
namespace {

/// Registers of a thread with which `ctas` CTAs fit on an SM. Each of the four sub-partitions of an
/// SM has 16384 registers for its share of the warps.
constexpr int maxRegisters(int threads, int ctas) {
  const int warpsPerPartition = (threads / 32 * ctas + 3) / 4;
  return std::min(16384 / (32 * warpsPerPartition) / 8 * 8, 232);
}

template <class T, int kTileN, int kTileM, int kSplitK, int kCtas, GemmForm kForm>
__global__ void __maxnreg__(maxRegisters(GemmShape<kTileN, kTileM, kSplitK, kForm>::kThreads,
                                         kCtas)) __cluster_dims__(kSplitK, 1, 1)
    gemm(const __grid_constant__ GemmParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = GemmShape<kTileN, kTileM, kSplitK, kForm>;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  __shared__ uint64_t full[kGemmMaxStages], empty[kGemmMaxStages];
  __shared__ alignas(
      8) float scales[kForm == GemmForm::Norm ? kTileM : 1]; // Of rows; read in pairs.

  const int rank = kSplitK > 1 ? int(clusterRank()) : 0;
  const int n0 = int(blockIdx.x) / kSplitK * kTileN, m0 = int(blockIdx.y) * kTileM;
  const int rows = min(kTileM, p.m - m0);
  // This CTA's K steps: all, or its part of the split.
  const int allSteps = (p.k + kTileK - 1) / kTileK;
  const int first = allSteps * rank / kSplitK, steps = allSteps * (rank + 1) / kSplitK - first;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kConsumerWarps = Shape::kConsumers / 32; // The warp after them is the producer.
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
  griddepLaunchDependents();
  __syncthreads();

  const auto leaveSplitK = [] { // The cluster barriers of a warp without accumulators.
    if constexpr (kSplitK > 1) {
      __syncwarp();
      syncClusterRelaxed();
      syncClusterRelaxed();
    }
  };
  if (warp == kConsumerWarps) {
    if (lane == 0) {
      // No other kernel reads W, and the CTAs that share a tile of it load it at the same time.
      const CachePolicy wPolicy = p.wIsConstant ? evictFirst() : evictNormal();
      const auto copyW = [&](int i, int stage) {
        arriveExpectTx(&full[stage], Shape::kStageBytes);
        loadW<kForm>(p, memory + stage * Shape::kStageBytes, first + i, n0, &full[stage], wPolicy);
      };
      const RowOrigin<kForm> origin = rowOrigin<kForm>(p, m0);
      const auto copyX = [&](int i, int stage) {
        loadX<kForm>(p, memory + stage * Shape::kStageBytes + Shape::kWBytes, first + i, origin,
                     &full[stage]);
      };
      const int early = steps < p.stages ? steps : p.stages;
      if (!p.wIsConstant)
        griddepWait();
#pragma unroll 1
      for (int i = 0; i < early; ++i)
        copyW(i, i);
      griddepWait();
      Ring ring{p.stages};
#pragma unroll 1
      for (int i = 0; i < steps; ++i, ring.next()) {
        if (i >= early) {
          waitBarrier(&empty[ring.stage], ring.phase ^ 1);
          copyW(i, ring.stage);
        }
        copyX(i, ring.stage);
      }
    }
    return leaveSplitK();
  }

  // The rows that this CTA stores; with split-K, its groups of eight rows.
  constexpr int kMaxGroups = Shape::kMaxGroups;
  const auto firstGroupOf = [](int rank) { return kTileM / 8 * rank / kSplitK; };
  const int firstGroup = firstGroupOf(rank);
  const int ownRows = min(firstGroupOf(rank + 1) * 8, rows) - firstGroup * 8;
  // A thread stores vectors of eight columns, the same columns in several rows.
  const int group = warp / 4;
  constexpr int kVectors = 64 / 8, kRowStep = 128 / kVectors;
  const int ownVector = int(threadIdx.x) % kVectors, ownRow = int(threadIdx.x) % 128 / kVectors;
  const int ownColumn = n0 + group * 64 + ownVector * 8;

  // The epilogue's operands are loaded before the mainloop.
  const int column = group * 64 + warp % 4 * 16 + lane / 4; // Of the accumulators; and column + 8.
  float bias[2] = {};
  if (!p.biasIsConstant)
    griddepWait();
  for (int h = 0; h < 2; ++h)
    if (const int n = n0 + column + h * 8; p.bias && warp < kConsumerWarps && n < p.n)
      bias[h] = toFloat(p.bias[n]);
  // The epilogue reads what earlier kernels wrote, and overwrites what they may still read.
  griddepWait();
  if constexpr (kForm == GemmForm::Norm) {
    const bool helps = warp > kConsumerWarps;
#pragma unroll 1
    for (int t = int(threadIdx.x) - (helps ? 32 : 0); t < rows; t += Shape::kConsumers + 32)
      scales[t] = scaleOf(p, m0 + t);
    if (helps) {
      syncThreads(1, Shape::kConsumers + 32);
      return leaveSplitK();
    }
  }

  float accumulators[kTileM / 2];
  // Descriptors of the operands in stage 0.
  const uint64_t w = warpUniform(tileDescriptor(memory + group * 64 * kTileK * 2));
  const uint64_t x = tileDescriptor(memory + Shape::kWBytes);
  Ring ring{p.stages};
  mainloop<T, kTileM, Shape::kStageBytes>(accumulators, ring, full, steps, w, x, [&](int stage) {
    if (lane == 0)
      arrive(&empty[stage]);
  });
  // All operands have been read, so the epilogue may reuse their memory; the scales are written.
  syncThreads(1, Shape::kConsumers + (kForm == GemmForm::Norm ? 32 : 0));

  // The accumulators that this thread stores. With split-K: the sum over the CTAs in rank order.
  float own[4 * kMaxGroups];
  if constexpr (kSplitK == 1) {
#pragma unroll
    for (int i = 0; i < 4 * kMaxGroups; ++i)
      own[i] = accumulators[i];
  } else {
    float4 *const partials = reinterpret_cast<float4 *>(memory) + threadIdx.x;
    constexpr int kRankPitch = kMaxGroups * Shape::kConsumers;
    syncClusterRelaxed(); // All CTAs have read their operands.

    sendPartials<kTileM, kSplitK, Shape>(accumulators, partials, rank);
    syncCluster(); // All partial accumulators have arrived.
#pragma unroll
    for (int g = 0; g < kMaxGroups; ++g) {
      float4 all = partials[g * Shape::kConsumers];
#pragma unroll
      for (int r = 1; r < kSplitK; ++r) {
        const float4 part = partials[r * kRankPitch + g * Shape::kConsumers];
        all = {all.x + part.x, all.y + part.y, all.z + part.z, all.w + part.w};
      }
      own[4 * g] = all.x;
      own[4 * g + 1] = all.y;
      own[4 * g + 2] = all.z;
      own[4 * g + 3] = all.w;
    }
  }

  T *const staged = reinterpret_cast<T *>(memory + Shape::kSplitKBytes) +
                    group * kMaxGroups * 8 * Shape::kResultPitch;
  stageResults<T, kTileM, kForm, Shape>(staged, own, scales, bias, firstGroup, warp, lane);
  syncThreads(2 + group, 128);

  // All lanes of a warp call epilogue().
#pragma unroll 1
  for (int t = ownRow; t < kMaxGroups * 8; t += kRowStep) {
    const bool inside = t < ownRows && ownColumn < p.n;
    const int64_t m = m0 + firstGroup * 8 + t;
    const Pairs<T> values = loadPairs(staged + t * Shape::kResultPitch + ownVector * 8);
    epilogue<kForm>(p, inside, m, ownColumn, values, residualOf<kForm>(p, inside, m, ownColumn));
  }
#endif
}

template <class T, int kTileN, int kTileM, int kSplitK, GemmForm kForm>
Result<KernelParameters> bindGemm(const LaunchView &launch, const LaunchAddresses &at) {
  constexpr GemmTile kTile = GemmShape<kTileN, kTileM, kSplitK, kForm>::kTile;
  CGC_ASSIGN_OR_RETURN(
      const GemmParameters<T> p,
      (gemmParameters<T, kForm>(launch, at, *checkGemm(launch, kDTypeOf<T>, kTile))));
  return KernelParameters(p);
}

} // namespace
} // namespace cgc
