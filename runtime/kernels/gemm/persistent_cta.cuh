// The state of a CTA of a persistent GEMM kernel: its shared memory and barriers, its place in the
// cluster, and the tiles that it computes. Included by gemm_persistent.cuh.
#pragma once

#include "runtime/kernels/gemm/persistent_shape.cuh"

namespace cgc {
namespace {

/// The barriers of a CTA in shared memory. Every thread arrives for its own accesses to shared
/// memory. One lane for its warp would do, but compute-sanitizer's racecheck then reports the other
/// lanes' accesses as races.
struct PersistentBarriers {
  uint64_t *full, *empty;        ///< Of the pipeline stages.
  uint64_t *stagedIsEmpty;       ///< The residual may overwrite the staged tile.
  uint64_t *stagedIsReady;       ///< Results may be written to it; the residual, if any, is there.
  uint64_t *firstHalfIsFull;     ///< Results are written to the first half of the staged tile.
  uint64_t *stagedIsFull;        ///< Results are written to all of it.
  uint64_t *statisticsAreStaged; ///< The row statistics of the tile's rows are in shared memory.
  /// `scales` and `biases` are those of the tile; stagedIsFull means that they have been read.
  uint64_t *epilogueIsPrepared;

  /// One thread calls it, before the cluster synchronizes.
  template <class Shape> __device__ __forceinline__ void initialize(int stages) const {
#pragma unroll 1
    for (int s = 0; s < stages; ++s) {
      initBarrier(&full[s], 1);
      // Arrivals of the consumer warps of all CTAs that this CTA loads operands for.
      initBarrier(&empty[s], (Shape::kAcross + Shape::kAlong - 1) * Shape::kWarps);
    }
    initBarrier(stagedIsEmpty, 1);
    initBarrier(stagedIsReady, 1);
    initBarrier(firstHalfIsFull, Shape::kWarps * 32);
    initBarrier(stagedIsFull, Shape::kWarps * 32);
    initBarrier(statisticsAreStaged, 1);
    initBarrier(epilogueIsPrepared, 64);
    fenceBarrierInit();
  }
};

/// The first row and column of y in a tile.
struct TileOrigin {
  int m, n;
};

/// The state that the warps of a CTA share, and the tile scheduler.
template <class T, int kTileM, GemmForm kForm, Clusters kClusters>
struct PersistentCta : PersistentBarriers {
  using Shape = PersistentShape<kTileM, kClusters>;
  static constexpr bool kWide = kClusters == Clusters::Wide, kTail = kClusters == Clusters::Tail;
  static constexpr int kBoxes = 4 * Shape::kBoxesPerHalf; ///< Of a tile of y.

  const GemmParameters<T> &p;
  const ClusterTiles &tiles;
  uint8_t *memory, *staged; ///< The pipeline stages; the tile of results.
  float *scales, *biases;   ///< Of the tile's rows; of its columns.
  int warp, lane;
  int across, along;       ///< Rank among the CTAs that share rows of X, and rows of W.
  uint16_t xRanks, wRanks; ///< Multicast masks: the CTAs that share X, and those that share W.
  bool hasResidual;        ///< gemm_norm has none.
  int steps;               ///< Of K.
  int firstTile, tileStep;

  __device__ __forceinline__ void waitForOperands() const {
    if constexpr (!kTail)
      griddepWait();
  }

  __device__ __forceinline__ TileOrigin originOf(int tile) const {
    const int outer = int(tiles.ofRow.quotient(uint32_t(tile)));
    const int inner = tile - outer * int(tiles.ofRow.divisor);
    const int m = ((p.mIsInner ? inner : outer) * Shape::kAlong + along) * kTileM;
    return TileOrigin{kTail ? tiles.firstM + m : m,
                      ((p.mIsInner ? outer : inner) * Shape::kAcross + across) * Shape::kTileN};
  }
  /// Calls f with the origin and the turn, 0, 1 and so on, of each of the CTA's tiles.
  template <class F> __device__ __forceinline__ void forTiles(F f) const {
    uint32_t turn = 0;
#pragma unroll 1
    for (int tile = firstTile; tile < tiles.count; tile += tileStep, ++turn)
      f(originOf(tile), turn);
  }
  /// The rows of a tile that are inside y.
  __device__ __forceinline__ int rowsOf(const TileOrigin &origin) const {
    const int rows = min(kTileM, p.m - origin.m);
    return kWide ? max(rows, 0) : rows; // Half of the last row of tiles may be empty.
  }

  /// Calls f with the address of a box of the staged tile, and its first column and row of y. The
  /// boxes of the first half of the rows come first.
  template <class F>
  __device__ __forceinline__ void withBox(const TileOrigin &origin, int box, F f) const {
    const int half = box / (2 * Shape::kBoxesPerHalf), ofHalf = box % (2 * Shape::kBoxesPerHalf);
    const int group = ofHalf / Shape::kBoxesPerHalf;
    const int m = (half * Shape::kBoxesPerHalf + ofHalf % Shape::kBoxesPerHalf) * Shape::kBoxM;
    f(staged + (group * kTileM + m) * 128, origin.n + group * 64, origin.m + m);
  }

  /// No other kernel reads W, so its lines leave the L2 cache first, unless this kernel reads W
  /// repeatedly.
  __device__ __forceinline__ CachePolicy policyOfW() const {
    return !kWide && p.wIsConstant && (p.mIsInner || tiles.count <= tileStep) ? evictFirst()
                                                                              : evictNormal();
  }
};

} // namespace
} // namespace cgc
