// product: y = activation(x w^T + bias) + residual on Hopper's tensor cores, and product_norm,
// which normalises x first: the tiles there are, and the launch shape that the kernels expect.
#pragma once

#include "runtime/kernels/rowwise/row_statistics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace cgc {

/// Shared memory of a block that has an SM to itself, less what the kernels declare themselves.
inline constexpr uint32_t kProductMemory = 224 << 10;
/// Columns that a stage holds.
inline constexpr uint32_t kProductDepth = 64;
/// Features of a block of a persistent kernel.
inline constexpr uint32_t kPersistentFeatures = 128;
/// Blocks of a wide cluster of a persistent kernel: two rows of four. Those of a row have the same
/// tokens, those behind one another the same features.
inline constexpr uint32_t kWideClusterBlocks = 8;
/// Most stages of a ring.
inline constexpr uint32_t kProductMaxStages = 16;

/// One way to cut the product of x [tokens, depth] and w [features, depth] into blocks. Weights are
/// the left operand of the tensor cores, so that a tile may have as few tokens as 8.
struct ProductTile {
  std::string_view name; ///< Kernel row: "product_f16_" + name.
  uint32_t features, tokens;
  uint32_t split; ///< Blocks (one cluster) that share a tile, each with a part of the depth.
  /// Whether the kernel is product_persistent.cuh's: as many blocks as the GPU has SMs stay for all
  /// tiles. Two, a cluster, have the same tokens and twice as many features; or hasWideClusters().
  bool persistent = false;
  bool normalises = false; ///< Whether it is one of product_norm.

  /// Whether this depth gives every block of the split something to add up (without, results were
  /// wrong on an H200, and why is not understood: docs/log/2026-11-22-split-k-push.md), and whether
  /// a persistent kernel that normalises can have its tokens' moments: they come in pairs of groups
  /// to the memory of the results.
  constexpr bool takes(int64_t depth) const {
    const int64_t groups = momentGroups(depth);
    if (persistent && normalises && (groups % 2 != 0 || groups * 8 > features * 2))
      return false;
    return depth > int64_t(split - 1) * kProductDepth;
  }
  /// The blocks of a launch on a GPU with so many SMs.
  constexpr std::array<uint32_t, 3> grid(int64_t tokenCount, int64_t featureCount,
                                         uint32_t multiprocessors) const {
    if (persistent) {
      const auto [ofTokens, ofFeatures] = tilesOfPairs(tokenCount, featureCount);
      const auto pairs = uint32_t(std::min(ofTokens * ofFeatures, int64_t(multiprocessors / 2)));
      return {std::max(2 * pairs, hasWideClusters() ? kWideClusterBlocks : 0), 1, 1};
    }
    return {uint32_t(tilesOf(featureCount, features)) * split,
            uint32_t(tilesOf(tokenCount, tokens)), 1};
  }
  static constexpr int64_t tilesOf(int64_t count, int64_t size) {
    return (count + size - 1) / size;
  }
  /// Of persistent ones: tiles of the tokens and of the features, twice `features` each, that pairs
  /// of blocks take in turns.
  constexpr std::array<int64_t, 2> tilesOfPairs(int64_t tokenCount, int64_t featureCount) const {
    return {tilesOf(tokenCount, tokens), tilesOf(featureCount, 2 * int64_t(features))};
  }
  /// Whether wide clusters take most of the tiles, and pairs beside them the others, on the SMs
  /// that those leave over: a product of so many tokens takes less power if the L2 cache sends
  /// less.
  constexpr bool hasWideClusters() const { return persistent && tokens > 192; }
  /// How the blocks of such a launch share its tiles.
  struct Shares {
    uint32_t clusters = 0, pairs = 0;
    /// Rows of 2 * tokens tokens of the clusters; the pairs have those behind.
    int64_t clusterRows = 0;
    int64_t turns = INT64_MAX; ///< Tiles that one has after the other, at most.
  };
  /// The shares with the fewest turns of a grid of so many blocks, on a GPU that has room for so
  /// many wide clusters at a time, at least one; of equal ones those in which the clusters have
  /// most.
  constexpr Shares shares(int64_t tokenCount, int64_t featureCount, uint32_t blocks,
                          uint32_t clustersAtOnce) const {
    const auto [ofTokens, ofFeatures] = tilesOfPairs(tokenCount, featureCount);
    const auto turns = [](int64_t tiles, uint32_t takers) {
      return tiles == 0 ? 0 : takers == 0 ? INT64_MAX : tilesOf(tiles, takers);
    };
    Shares best;
    for (uint32_t clusters = std::min(clustersAtOnce, blocks / kWideClusterBlocks); clusters > 0;
         --clusters) {
      const uint32_t pairs = (blocks - clusters * kWideClusterBlocks) / 2;
      for (int64_t rows = 0; rows <= tilesOf(ofTokens, 2); ++rows) {
        const int64_t behind = std::max(ofTokens - 2 * rows, int64_t(0));
        const int64_t most = std::max(turns(rows * tilesOf(ofFeatures, 2), clusters),
                                      turns(behind * ofFeatures, pairs));
        if (most < best.turns || (most == best.turns && rows > best.clusterRows))
          best = {clusters, pairs, rows, most};
      }
    }
    return best;
  }
  /// A warpgroup for each 64 features and a warp that copies, of product_norm one more, that helps
  /// to read moments; persistent ones have a warpgroup for all of this.
  constexpr uint32_t threads() const {
    return features * 2 + (persistent ? 128 : normalises ? 64 : 32);
  }
  /// Of persistent ones: the tokens of a box in which results are stored, whole groups of 8 rows of
  /// the swizzle.
  constexpr uint32_t boxTokens() const { return tokens > 192 ? tokens / 4 : tokens / 2; }
  /// The most groups of 8 tokens that a block finishes: of a split, its share of the tile.
  constexpr uint32_t mostGroups() const { return (tokens / 8 + split - 1) / split; }
  /// Of a split: where a block has the sums that others hand to it, one of four for each thread.
  constexpr uint32_t handedBytes() const {
    return split == 1 ? 0 : split * mostGroups() * features * 2 * 16;
  }
  /// With so many stages: 64 columns of both operands each, on their way at the same time. The
  /// results are staged in the same memory, padded against bank conflicts. 1024 more, to begin at a
  /// multiple of it.
  constexpr uint32_t sharedBytes(uint32_t stages) const {
    const uint32_t operands = stages * (features + tokens) * 128;
    if (persistent) // Results have memory of their own.
      return operands + features * tokens * 2 + 1024;
    const uint32_t results = handedBytes() + features / 64 * mostGroups() * 8 * (64 + 8) * 2;
    return std::max(operands, results) + 1024;
  }
  /// The most stages, up to `most`, for which so much memory is enough; 1 if not even two fit.
  constexpr uint32_t stagesIn(uint32_t bytes, uint32_t most = kProductMaxStages) const {
    uint32_t stages = 1;
    while (stages < most && sharedBytes(stages + 1) <= bytes)
      ++stages;
    return stages;
  }
};

/// All tiles, in the order of product_tiles.def.
std::span<const ProductTile> productTiles();
/// Those of product_norm, in the order of product_norm_tiles.def.
std::span<const ProductTile> productNormTiles();

} // namespace cgc
