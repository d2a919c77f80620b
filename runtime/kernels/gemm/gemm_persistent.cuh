// gemm and gemm_norm for many rows of X: the persistent kernels. A CTA computes several output
// tiles in turn. The CTAs of a cluster share operands by multicast. The epilogue stages a tile's
// results in memory of their own, and TMA stores them during the mainloop of the next tile.
// Included by gemm_instances.cuh.
#pragma once

#include "runtime/kernels/gemm/persistent_consumer.cuh"
#include "runtime/kernels/gemm/persistent_producer.cuh"

namespace cgc {
namespace {

/// A kernel with wide clusters releases its tail launch after its own griddepcontrol.wait, when the
/// writes of all earlier kernels are in memory. PTX guarantees their visibility only to a thread
/// that waits. The tail launch does not wait before it reads, because its wait would be for this
/// kernel; but its CTAs start after the release, with none of that data in their caches. It waits
/// for this kernel before it exits, so that a successor that waits for the tail launch waits for
/// both.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
__global__ void __launch_bounds__(PersistentShape<kTileM, kClusters>::kThreads, 1)
    __cluster_dims__(PersistentShape<kTileM, kClusters>::kCtas, 1, 1)
        gemmPersistent(const __grid_constant__ GemmParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = PersistentShape<kTileM, kClusters>;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  uint8_t *const staged = memory + p.stages * Shape::kStageBytes;
  __shared__ uint64_t full[kGemmMaxStages], empty[kGemmMaxStages];
  __shared__ uint64_t stagedIsEmpty, stagedIsReady, firstHalfIsFull, stagedIsFull;
  __shared__ uint64_t statisticsAreStaged, epilogueIsPrepared;
  __shared__ alignas(8) float scales[kForm == GemmForm::Norm ? kTileM : 1]; // Read in pairs.
  __shared__ float biases[Shape::kTileN];
  const PersistentBarriers barriers{full,
                                    empty,
                                    &stagedIsEmpty,
                                    &stagedIsReady,
                                    &firstHalfIsFull,
                                    &stagedIsFull,
                                    &statisticsAreStaged,
                                    &epilogueIsPrepared};

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = int(clusterRank()), across = rank % Shape::kAcross,
            along = rank / Shape::kAcross;
  const auto xRanks = uint16_t(((1 << Shape::kAcross) - 1) << along * Shape::kAcross);
  const auto wRanks = uint16_t((1 | 1 << Shape::kAcross * (Shape::kAlong - 1)) << across);
  const bool hasResidual = kForm != GemmForm::Norm && p.residual;
  if (threadIdx.x == 0) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
    barriers.initialize<Shape>(p.stages);
  }
  if constexpr (kClusters != Clusters::Wide)
    griddepLaunchDependents();
  const int steps = (p.k + kTileK - 1) / kTileK;
  const int firstTile = int(blockIdx.x) / Shape::kCtas, tileStep = int(gridDim.x) / Shape::kCtas;
  const PersistentCta<T, kTileM, kForm, kClusters> cta{
      barriers,  p,           kClusters == Clusters::Tail ? p.tailTiles : p.tiles,
      memory,    staged,      scales,
      biases,    warp,        lane,
      across,    along,       xRanks,
      wRanks,    hasResidual, steps,
      firstTile, tileStep};
  syncClusterRelaxed();

  if (warp >= Shape::kWarps) {
    shrinkRegisters<Shape::kProducerRegisters>();
    if (threadIdx.x == Shape::kWarps * 32)
      loadOperands(cta);
    if (threadIdx.x == Shape::kWarps * 32 + 32)
      storeResults(cta);
    if (warp >= Shape::kWarps + 2)
      prepareEpilogues(cta);
  } else {
    // Consumers need no griddepcontrol.wait: the producer loads X after its own, and consumers
    // write results only after they have multiplied X.
    growRegisters<Shape::kConsumerRegisters>();
    consumeTiles(cta);
  }
#endif
}

} // namespace
} // namespace cgc
