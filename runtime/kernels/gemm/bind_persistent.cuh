// Binds launches of the persistent GEMM kernels: tensor maps of the results, and the tiles of
// clusters and of the tail launch. Included by gemm_instances.cuh.
#pragma once

#include "runtime/kernels/gemm/gemm_persistent.cuh"

#include <string>

namespace cgc {
namespace {

/// The number of clusters of a kernel's launch that the GPU can hold at the same time, at least 1.
/// Device if it can hold none.
inline Result<uint32_t> clustersAtOnce(const void *function, const LaunchView &launch,
                                       uint32_t ctasOfCluster) {
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = ctasOfCluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = ctasOfCluster;
  config.blockDim = launch.block[0];
  config.dynamicSmemBytes = launch.sharedBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  if (const cudaError_t error = cudaOccupancyMaxActiveClusters(&count, function, &config);
      error != cudaSuccess) {
    cudaGetLastError(); // Clears the error, which a later call would report.
    return Status(Code::Device, std::string("cannot ask for how many clusters there is room: ") +
                                    cudaGetErrorString(error));
  }
  if (count < 1)
    return Status(Code::Device, "this GPU, or the part of it, has no room for a cluster of " +
                                    std::to_string(ctasOfCluster) +
                                    " CTAs; run the plan on a whole GPU");
  return uint32_t(count);
}

template <class T, int kTileM, GemmForm kForm>
Result<KernelParameters> bindPersistent(const LaunchView &launch, const LaunchAddresses &at) {
  constexpr DType dtype = kDTypeOf<T>;
  constexpr GemmTile tile{"", kPersistentTileN, kTileM, 1, true, kForm};
  constexpr Clusters kClusters = kClustersOf<kTileM>;
  static_assert(kClusters == Clusters::Pairs ||
                PersistentShape<kTileM, kClusters>::kCtas == kWideClusterCtas);
  const GemmLaunch l = *checkGemm(launch, dtype, tile);
  CGC_ASSIGN_OR_RETURN(GemmParameters<T> p, (gemmParameters<T, kForm>(launch, at, l)));
  CGC_ASSIGN_OR_RETURN(p.yTiles, tensorMap(at.writes[kGemmY], dtype, l.y));
  if (p.residual) {
    CGC_ASSIGN_OR_RETURN(p.residualTiles, tensorMap(at.reads[kGemmResidual], dtype, l.residual));
  }
  const auto [tilesM, tilesN] = tile.tilesOfPairs(l.m, l.n);
  p.mIsInner = p.m < p.n;
  const auto tilesOf = [&](int64_t m, int64_t n, int64_t firstM) {
    return ClusterTiles{int(m * n), Divider(std::max(uint32_t(p.mIsInner ? m : n), 1u)),
                        int(firstM)};
  };
  if constexpr (kClusters == Clusters::Pairs) {
    p.tiles = tilesOf(tilesM, tilesN, 0);
    return KernelParameters(p);
  } else {
    const auto function = [](auto *kernel) { return reinterpret_cast<const void *>(kernel); };
    CGC_ASSIGN_OR_RETURN(const uint32_t atOnce,
                         clustersAtOnce(function(&gemmPersistent<T, kTileM, kForm, Clusters::Wide>),
                                        launch, PersistentShape<kTileM, kClusters>::kCtas));
    const auto schedule = tile.schedule(l.m, l.n, launch.grid[0], atOnce);
    p.tiles = tilesOf(schedule.clusterRows, GemmTile::tilesOf(tilesN, 2), 0);
    p.tailTiles = tilesOf(std::max(tilesM - 2 * schedule.clusterRows, int64_t(0)), tilesN,
                          schedule.clusterRows * 2 * kTileM);
    KernelParameters parameters(p);
    parameters.tail.blocks = 2 * schedule.pairs;
    if (p.tailTiles.count > 0)
      parameters.tail.function = function(&gemmPersistent<T, kTileM, kForm, Clusters::Tail>);
    return parameters;
  }
}

} // namespace
} // namespace cgc
