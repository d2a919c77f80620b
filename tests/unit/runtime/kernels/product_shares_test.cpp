// How persistent kernels share tiles between wide clusters and the pairs beside them.
#include "runtime/kernels/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace cgc {
namespace {

constexpr ProductTile kWide{"", kPersistentFeatures, 256, 1, true};

/// The most tiles that a cluster or a pair has one after the other.
int64_t turnsOf(const ProductTile::Shares &shares, int64_t tokens, int64_t features) {
  const auto [rows, columns] = kWide.tilesOfPairs(tokens, features);
  const int64_t ofClusters = shares.clusterRows * ProductTile::tilesOf(columns, 2);
  const int64_t ofPairs = std::max(rows - 2 * shares.clusterRows, int64_t(0)) * columns;
  EXPECT_TRUE(ofClusters == 0 || shares.clusters > 0);
  EXPECT_TRUE(ofPairs == 0 || shares.pairs > 0);
  return std::max(shares.clusters ? ProductTile::tilesOf(ofClusters, shares.clusters) : 0,
                  shares.pairs ? ProductTile::tilesOf(ofPairs, shares.pairs) : 0);
}

/// 64 images of ViT-L-14 on an H200, whose groups of SMs have room for 15 wide clusters: as many
/// turns as if 66 pairs had all tiles.
TEST(ProductShares, AreAsFastAsPairsAlone) {
  for (const int64_t features : {1024, 3072, 4096}) {
    const auto shares = kWide.shares(16448, features, 132, 15);
    EXPECT_EQ(shares.clusters, 15u);
    EXPECT_EQ(shares.pairs, 6u);
    EXPECT_EQ(shares.clusterRows, 30);
    EXPECT_EQ(turnsOf(shares, 16448, features), features / 256);
  }
}

TEST(ProductShares, CoverAllTilesWhateverRoomThereIs) {
  for (const int64_t tokens : {1, 256, 257, 513, 2056, 16448})
    for (const int64_t features : {8, 256, 264, 1024})
      for (const uint32_t atOnce : {1u, 2u, 14u, 15u, 16u, 17u}) {
        const uint32_t blocks = kWide.grid(tokens, features, 132)[0];
        const auto shares = kWide.shares(tokens, features, blocks, atOnce);
        EXPECT_EQ(shares.clusters * kWideClusterBlocks + shares.pairs * 2, blocks);
        EXPECT_LE(shares.clusters, atOnce);
        turnsOf(shares, tokens, features);
      }
}

/// All tiles are the clusters' where no SM is left over.
TEST(ProductShares, WithoutPairs) {
  const auto shares = kWide.shares(1000, 512, 8, 15);
  EXPECT_EQ(shares.clusters, 1u);
  EXPECT_EQ(shares.pairs, 0u);
  EXPECT_EQ(shares.clusterRows, 2);
}

} // namespace
} // namespace cgc
