// The GEMM kernels gemm_*, gemm_norm_* and conv_*: their tiles, ids, arguments and launch shapes,
// and the check.
#pragma once

#include "runtime/kernels/conv_windows.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/rowwise/row_statistics.h"
#include "runtime/kernels/tensor_map_shape.h"

#include <algorithm>
#include <array>
#include <optional>

namespace cgc {

/// Dynamic shared memory of a CTA that has an SM to itself, in bytes. The SM's 227 KiB less what
/// the kernels declare statically.
inline constexpr uint32_t kGemmMaxSharedBytes = 224 << 10;
/// The same for the kernels of gemm_mma.cuh, which run on GPUs whose CTAs have at most 99 KiB.
inline constexpr uint32_t kMmaMaxSharedBytes = 96 << 10;
/// Extent of a pipeline stage in K, in elements; of those kernels it is GemmTile::stepK().
inline constexpr uint32_t kGemmTileK = 64;
/// Extent in N of a CTA's tile in a persistent kernel.
inline constexpr uint32_t kPersistentTileN = 128;
/// CTAs in a wide cluster of a persistent kernel: two rows of four. The CTAs of a row have the same
/// rows of X, those of a column the same rows of W.
inline constexpr uint32_t kWideClusterCtas = 8;
/// Upper limit of pipeline stages.
inline constexpr uint32_t kGemmMaxStages = 16, kMmaMaxStages = 4;

/// What a kernel multiplies with W, and its epilogue.
enum class GemmForm : uint8_t {
  Plain, ///< gemm: the rows of X; activation, then residual or gate.
  Norm,  ///< gemm_norm: the normalized rows of X; activation.
  Conv   ///< conv: the windows of an image, each a row of X; residual, then activation.
};

/// A tiling of y[M,N] = x[M,K] w[N,K]^T. The kernels for Hopper compute y^T = w x^T: w is the left
/// operand of wgmma and N runs along wgmma's M of 64, so that a tile may be as narrow as 8 in M.
struct GemmTile {
  /// tileN x tileM, then the split-K factor, "persistent" or "mma". The kernel is "gemm_f16_" +
  /// name.
  std::string_view name;
  uint32_t tileN, tileM;
  uint32_t splitK; ///< CTAs of a cluster that share an output tile, each with a part of K.
  /// Whether gemm_persistent.cuh has the kernel. Its grid has at most one CTA for each SM, and a
  /// cluster computes several tiles in turn. The two CTAs of a pair share a tile of tileM rows and
  /// 2 * tileN columns of y; see hasWideClusters() for clusters of eight.
  bool persistent = false;
  GemmForm form = GemmForm::Plain;
  /// Whether gemm_mma.cuh has the kernel, which runs on every GPU from sm_80 on. The others are for
  /// Hopper.
  bool mma = false;

  /// Whether the kernel supports this K. Split-K needs at least one K step for each CTA: without
  /// one, results were wrong on an H200, for a reason that is not understood
  /// (docs/log/2026-11-22-split-k-push.md). A persistent kernel that normalizes stages the row
  /// statistics of its tile in the memory of the results, two groups at a time.
  constexpr bool takes(int64_t k) const {
    const int64_t groups = statisticsGroups(k);
    if (persistent && form == GemmForm::Norm && (groups % 2 != 0 || groups * 8 > tileN * 2))
      return false;
    return k > int64_t(splitK - 1) * kGemmTileK;
  }
  /// The grid of a launch on a GPU with this many SMs.
  constexpr std::array<uint32_t, 3> grid(int64_t m, int64_t n, uint32_t multiprocessors) const {
    if (persistent) {
      const auto [tilesM, tilesN] = tilesOfPairs(m, n);
      const auto pairs = uint32_t(std::min(tilesM * tilesN, int64_t(multiprocessors / 2)));
      return {std::max(2 * pairs, hasWideClusters() ? kWideClusterCtas : 0), 1, 1};
    }
    return {uint32_t(tilesOf(n, tileN)) * splitK, uint32_t(tilesOf(m, tileM)), 1};
  }
  static constexpr int64_t tilesOf(int64_t count, int64_t size) {
    return (count + size - 1) / size;
  }
  /// Persistent kernels: the number of tiles of a pair, tileM x 2 tileN, along M and along N.
  constexpr std::array<int64_t, 2> tilesOfPairs(int64_t m, int64_t n) const {
    return {tilesOf(m, tileM), tilesOf(n, 2 * int64_t(tileN))};
  }
  /// Whether wide clusters compute most tiles and a tail launch of pairs the others, on the SMs
  /// that wide clusters cannot use. A wide cluster loads fewer bytes from the L2 cache for each
  /// result, which lowers the power of a GEMM with a large M.
  constexpr bool hasWideClusters() const { return persistent && tileM > 192; }
  /// The division of a launch's tiles between wide clusters and the pairs of the tail launch.
  struct TileSchedule {
    uint32_t clusters = 0, pairs = 0;
    /// Rows of cluster tiles, of 2 tileM rows of y each. The pairs compute the rows after them.
    int64_t clusterRows = 0;
    int64_t waves = INT64_MAX; ///< The most tiles that one cluster or pair computes.
  };
  /// The division with the fewest waves for a grid of this many CTAs on a GPU that can hold
  /// `clustersAtOnce` wide clusters, at least 1. Among equal ones, that with the most clusterRows.
  constexpr TileSchedule schedule(int64_t m, int64_t n, uint32_t ctas,
                                  uint32_t clustersAtOnce) const {
    const auto [tilesM, tilesN] = tilesOfPairs(m, n);
    const auto waves = [](int64_t tiles, uint32_t workers) {
      return tiles == 0 ? 0 : workers == 0 ? INT64_MAX : tilesOf(tiles, workers);
    };
    TileSchedule best;
    for (uint32_t clusters = std::min(clustersAtOnce, ctas / kWideClusterCtas); clusters > 0;
         --clusters) {
      const uint32_t pairs = (ctas - clusters * kWideClusterCtas) / 2;
      for (int64_t rows = 0; rows <= tilesOf(tilesM, 2); ++rows) {
        const int64_t tail = std::max(tilesM - 2 * rows, int64_t(0));
        const int64_t most =
            std::max(waves(rows * tilesOf(tilesN, 2), clusters), waves(tail * tilesN, pairs));
        if (most < best.waves || (most == best.waves && rows > best.clusterRows))
          best = {clusters, pairs, rows, most};
      }
    }
    return best;
  }
  /// Threads of a CTA: a consumer warpgroup for each 64 of tileN and a producer warp; gemm_norm has
  /// one more warp, which helps to read row statistics. The producer warps of a persistent kernel
  /// fill a warpgroup. The four warps of an mma kernel all copy and multiply.
  constexpr uint32_t threads() const {
    if (mma)
      return 128;
    return tileN * 2 + (persistent ? 128 : form == GemmForm::Norm ? 64 : 32);
  }
  /// Persistent kernels: the rows of y in a box of a TMA store, a multiple of the 8 rows after
  /// which the swizzle repeats.
  constexpr uint32_t boxM() const { return tileM > 192 ? tileM / 4 : tileM / 2; }
  /// Rows in a TMA box of X and of W.
  constexpr uint32_t xBoxRows() const { return persistent ? boxM() : tileM; }
  constexpr uint32_t wBoxRows() const { return hasWideClusters() ? tileN / 2 : tileN; }
  /// The most groups of 8 rows of y that a CTA stores. With split-K each CTA stores some.
  constexpr uint32_t maxGroups() const { return (tileM / 8 + splitK - 1) / splitK; }
  /// Split-K: the bytes of shared memory for the partial accumulators from all CTAs of the cluster.
  constexpr uint32_t splitKBytes() const {
    return splitK == 1 ? 0 : splitK * maxGroups() * tileN * 2 * 16;
  }
  /// Extent of a pipeline stage in K. Large tiles of mma kernels have short stages, so that several
  /// fit into half of kMmaMaxSharedBytes.
  constexpr uint32_t stepK() const { return mma && tileN + tileM > 128 ? 32 : kGemmTileK; }
  /// mma kernels: the warps along M; the others lie along N.
  constexpr uint32_t warpsM() const { return tileM >= 32 ? 2 : 1; }
  constexpr uint32_t warpsN() const { return threads() / 32 / warpsM(); }
  constexpr uint32_t maxStages() const { return mma ? kMmaMaxStages : kGemmMaxStages; }
  /// Dynamic shared memory for this many stages, each with stepK() columns of both operands. The
  /// epilogue stages results in the same memory, in rows padded against bank conflicts; a
  /// persistent kernel stages them in memory of their own. 1024 bytes more align the first tile of
  /// wgmma.
  constexpr uint32_t sharedBytes(uint32_t stages) const {
    if (mma)
      return std::max(stages * (tileN + tileM) * stepK() * 2, tileM * (tileN + 8) * 2);
    const uint32_t operands = stages * (tileN + tileM) * 128;
    if (persistent)
      return operands + tileN * tileM * 2 + 1024;
    const uint32_t results = splitKBytes() + tileN / 64 * maxGroups() * 8 * (64 + 8) * 2;
    return std::max(operands, results) + 1024;
  }
  /// The most stages, up to `most`, that fit into this many bytes; 1 if two do not.
  constexpr uint32_t stagesIn(uint32_t bytes, uint32_t most = kGemmMaxStages) const {
    uint32_t stages = 1;
    while (stages < std::min(most, maxStages()) && sharedBytes(stages + 1) <= bytes)
      ++stages;
    return stages;
  }
};

/// The tiles of gemm_*, in the order of tiles.def, then of mma_tiles.def.
std::span<const GemmTile> gemmTiles();
/// The tiles of gemm_norm_*, in the order of norm_tiles.def, then of mma_tiles.def.
std::span<const GemmTile> gemmNormTiles();
/// The tiles of conv_*, in the order of conv_tiles.def.
std::span<const GemmTile> convTiles();

/// A kernel of gemm_*, gemm_norm_* or conv_*: the tile's form is its family.
struct GemmKernel {
  DType dtype;          ///< F16 or BF16.
  const GemmTile *tile; ///< Of gemmTiles(), gemmNormTiles() or convTiles().

  /// Its row of kernels.def.
  const Kernel &row() const;
  bool operator==(const GemmKernel &) const = default;
};
/// The kernel of a row of kernels.def; nothing for a row of another family.
std::optional<GemmKernel> gemmKernelOf(const Kernel &row);

// The arguments of a launch, in the order of kernels.def.

/// What gemm_norm reads in place of a residual is the row statistics of x.
enum GemmRead : size_t { kGemmX, kGemmW, kGemmBias, kGemmResidual, kGemmReads };
inline constexpr GemmRead kGemmXStatistics = kGemmResidual;
enum GemmWrite : size_t { kGemmY, kGemmYStatistics, kGemmWrites };
struct GemmNumbers {
  int64_t m, n, k, activation;
  int64_t gates; ///< Whether the residual is a factor instead of an addend; gemm alone.

  static GemmNumbers of(std::span<const int64_t> ints) {
    return {ints[0], ints[1], ints[2], ints[3], ints[4]};
  }
  std::array<int64_t, 5> ints() const { return {m, n, k, activation, gates}; }
};

/// K of a convolution with these windows: those of a window whose channels zeros fill up to a
/// multiple of kGemmTileK.
constexpr int64_t convK(const ConvWindows &windows, int64_t channels) {
  return windows.kernel[0] * windows.kernel[1] * GemmTile::tilesOf(channels, kGemmTileK) *
         kGemmTileK;
}

/// A checked launch.
struct GemmLaunch {
  int64_t m, n, k;
  uint32_t stages;
  Activation activation;
  bool gates; ///< The residual is a factor.
  /// From row to row, in elements. residualStride is 0 without one; xStride and wStride are K in
  /// conv.
  int64_t xStride, wStride, residualStride, yStride;
  TensorMapShape w;           ///< Not of mma kernels, which have no maps.
  TensorMapShape x;           ///< Not of conv.
  ImageMapShape image;        ///< Of conv alone.
  TensorMapShape y, residual; ///< Persistent kernels only; the residual only if there is one.
};
Result<GemmLaunch> checkGemm(const LaunchView &launch, DType dtype, const GemmTile &tile);
/// conv.cpp: the map of the dense images that a kernel reads the windows of, in boxes of so many
/// windows. Refuses images and windows beyond its limits.
Result<ImageMapShape> convImageMap(const OperandView &image, DType dtype,
                                   const ConvWindows &windows, int64_t boxPixels);
/// conv.cpp: the part of it for the images and W of a launch of conv_*, whose map it sets.
Status checkConvOperands(const LaunchView &launch, DType dtype, const GemmTile &tile,
                         GemmLaunch &checked);

} // namespace cgc
