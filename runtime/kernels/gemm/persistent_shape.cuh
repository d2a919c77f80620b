// The shape of a persistent GEMM kernel: its clusters, the boxes that its CTAs load, and its shared
// memory. Included by gemm_persistent.cuh.
#pragma once

#include "runtime/kernels/gemm/gemm_common.cuh"

namespace cgc {
namespace {

/// The clusters of a persistent kernel. Wide clusters load fewer bytes from the L2 cache, which
/// lowers the GEMM's power. But they leave some SMs unused, because the number of SMs in a GPC is
/// no multiple of eight; a tail launch of pairs uses those.
enum class Clusters {
  Pairs, ///< Two CTAs with the same rows of X. They compute all tiles.
  Wide,  ///< Two rows of four CTAs. Those of a row have the same rows of X. The first rows of y.
  Tail   ///< The tail launch of such a kernel: pairs that compute the remaining rows of y.
};

/// Each CTA computes 128 columns of y, in two consumer warpgroups.
template <int kTileM, Clusters kClusters> struct PersistentShape {
  static constexpr GemmTile kTile{"", kPersistentTileN, kTileM, 1, true};
  static constexpr int kTileN = kPersistentTileN;
  /// CTAs of a cluster that share rows of X (kAcross), and that share rows of W (kAlong).
  static constexpr int kAcross = kClusters == Clusters::Wide ? 4 : 2;
  static constexpr int kAlong = kClusters == Clusters::Wide ? 2 : 1;
  static constexpr int kCtas = kAcross * kAlong;
  /// Rows in a TMA box of X and of W. Wide clusters and their tail launch use the same tensor maps.
  static constexpr int kXBoxRows = int(kTile.xBoxRows()), kWBoxRows = int(kTile.wBoxRows());
  /// Boxes of each operand that a CTA loads for a stage, and multicasts to the CTAs that share
  /// them.
  static constexpr int kXBoxes = kTileM / kAcross / kXBoxRows;
  static constexpr int kWBoxes = kTileN / kAlong / kWBoxRows;
  static constexpr int kWBytes = kTileN * kTileK * 2;
  static constexpr int kXBytes = kTileM * kTileK * 2;
  static constexpr int kStageBytes = kWBytes + kXBytes;
  /// Consumer warps. The warpgroup after them has a warp that loads operands and residuals, one
  /// that loads row statistics and stores results, and two that prepare epilogues.
  static constexpr int kWarps = kTileN / 16, kThreads = int(kTile.threads());
  /// TMA stores results in boxes of kBoxM rows and 64 columns.
  static constexpr int kBoxM = int(kTile.boxM());
  static constexpr int kBoxesPerHalf = kTileM / 2 / kBoxM; ///< Of half of the rows, 64 columns.
  static constexpr int kStagedBytes = kTileM * kTileN * 2;
  static_assert(kThreads == kWarps * 32 + 128 && kTileN == 128 && kTileM % 16 == 0 &&
                kTileM / 2 % kBoxM == 0 && kBoxM % 8 == 0); // Each half is stored by itself.
  static_assert(kTile.sharedBytes(2) ==
                2 * kStageBytes + kStagedBytes + 1024); // 1024 to align the first tile.
  static_assert(sizeof(RowStatistics) == 8);            // Read in pairs of 16 bytes.
  /// Registers of a thread of the last warpgroup, and of a consumer thread, after setmaxnreg. The
  /// launch gives each of the 384 threads 168: 128 * 40 + 256 * 232 = 384 * 168.
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
};

/// The clusters of the kernel that a plan names for this tile.
template <int kTileM>
constexpr Clusters kClustersOf =
    GemmTile{"", kPersistentTileN, kTileM, 1, true}.hasWideClusters() ? Clusters::Wide
                                                                      : Clusters::Pairs;

} // namespace
} // namespace cgc
