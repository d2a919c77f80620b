// How persistent kernels share tiles between wide clusters and the pairs beside them.
#include "runtime/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace cgc {
namespace {

constexpr ProductTile kWide{"", kPersistentFeatures, 256, 1, true};

int64_t tilesIn(int64_t count, int64_t size) {
  return count / size + (count % size ? 1 : 0);
}

/// The most tiles that a cluster or a pair has one after the other, if the clusters have so many
/// rows of 512 tokens; a large number where somebody has tiles who is not there.
int64_t turnsOf(int64_t clusters, int64_t pairs, int64_t rows, int64_t tokens, int64_t features) {
  int64_t most = 0;
  if (const int64_t tiles = rows * tilesIn(features, 512))
    most = clusters ? tilesIn(tiles, clusters) : INT64_MAX;
  if (const int64_t behind = tokens - rows * 512; behind > 0)
    most = std::max(most, pairs ? tilesIn(tilesIn(behind, 256) * tilesIn(features, 256), pairs)
                                : INT64_MAX);
  return most;
}

/// 64 images of ViT-L-14 on an H200, whose groups of SMs have room for 15 wide clusters: as many
/// turns as if 66 pairs had all tiles.
TEST(ProductShares, Of64ImagesAreAsManyTurnsAsOfPairsAlone) {
  for (const int64_t features : {1024, 3072, 4096}) {
    const auto shares = kWide.shares(16448, features, 132, 15);
    EXPECT_EQ(shares.clusters, 15u);
    EXPECT_EQ(shares.pairs, 6u);
    EXPECT_EQ(shares.clusterRows, 30);
    EXPECT_EQ(shares.turns, features / 256);
  }
}

TEST(ProductShares, HaveTheFewestTurnsAndThenTheMostRowsOfClusters) {
  for (const int64_t tokens : {1, 256, 257, 513, 2056, 12336, 16448})
    for (const int64_t features : {8, 256, 264, 776, 1024})
      for (const uint32_t atOnce : {1u, 2u, 14u, 15u, 16u, 17u}) {
        const uint32_t blocks = kWide.grid(tokens, features, 132)[0];
        int64_t least = INT64_MAX, mostRows = 0;
        for (int64_t clusters = 1; clusters <= std::min(atOnce, blocks / 8); ++clusters)
          for (int64_t rows = 0; (rows - 1) * 512 < tokens; ++rows)
            if (const int64_t turns =
                    turnsOf(clusters, (blocks - 8 * clusters) / 2, rows, tokens, features);
                turns < least || (turns == least && rows > mostRows)) {
              least = turns;
              mostRows = rows;
            }
        const auto shares = kWide.shares(tokens, features, blocks, atOnce);
        EXPECT_GE(shares.clusters, 1u);
        EXPECT_LE(shares.clusters, atOnce);
        EXPECT_EQ(shares.clusters * kWideClusterBlocks + shares.pairs * 2, blocks);
        EXPECT_EQ(shares.turns, least) << tokens << " x " << features << ", room " << atOnce;
        EXPECT_EQ(shares.turns,
                  turnsOf(shares.clusters, shares.pairs, shares.clusterRows, tokens, features));
        EXPECT_EQ(shares.clusterRows, mostRows) << tokens << " x " << features;
      }
}

/// Where one cluster less saves a turn.
TEST(ProductShares, DoNotTakeAllClusters) {
  const auto shares = kWide.shares(12336, 1024, 132, 15); // 48 images.
  EXPECT_EQ(shares.clusters, 14u);
  EXPECT_EQ(shares.turns, 3);
}

TEST(ProductShares, GridsHaveAWideClusterAtLeast) {
  EXPECT_EQ(kWide.grid(1, 8, 132)[0], kWideClusterBlocks);
  const auto shares = kWide.shares(1000, 512, 8, 15);
  EXPECT_EQ(shares.clusters, 1u);
  EXPECT_EQ(shares.pairs, 0u);
  EXPECT_EQ(shares.clusterRows, 2);
}

/// What tests on a GPU rely on: that at these sizes pairs have tiles beside those of clusters,
/// whatever room there is.
TEST(ProductShares, OfTestsOnAGpuArePairsToo) {
  const auto expectBoth = [](int64_t tokens, int64_t features) {
    const auto shares = kWide.shares(tokens, features, kWide.grid(tokens, features, 12)[0], 15);
    EXPECT_GT(shares.clusterRows, 0) << tokens << " x " << features;
    EXPECT_LT(shares.clusterRows * 512, tokens) << tokens << " x " << features;
  };
  for (const int64_t features : {80, 128, 264}) // Of chains.
    expectBoth(1100, features);
  expectBoth(600, 520);
  expectBoth(600, 776); // More features than tokens.
  expectBoth(900, 520);
}

/// Only the largest tiles of persistent kernels.
TEST(ProductShares, AreOfLargeTiles) {
  for (const ProductTile &tile : productTiles())
    EXPECT_EQ(tile.hasWideClusters(), tile.name == "128x256_persistent") << tile.name;
}

} // namespace
} // namespace cgc
