// GemmTile::schedule(): the division of tiles between wide clusters and the tail launch of pairs.
#include "runtime/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace cgc {
namespace {

constexpr GemmTile kWide{"", kPersistentTileN, 256, 1, true};

int64_t tilesIn(int64_t count, int64_t size) {
  return count / size + (count % size ? 1 : 0);
}

/// The most tiles that a cluster or a pair computes in turn, if the clusters have `rows` rows of
/// tiles of 512 rows of y. INT64_MAX if tiles are assigned to no cluster or pair.
int64_t wavesOf(int64_t clusters, int64_t pairs, int64_t rows, int64_t m, int64_t n) {
  int64_t most = 0;
  if (const int64_t tiles = rows * tilesIn(n, 512))
    most = clusters ? tilesIn(tiles, clusters) : INT64_MAX;
  if (const int64_t behind = m - rows * 512; behind > 0)
    most =
        std::max(most, pairs ? tilesIn(tilesIn(behind, 256) * tilesIn(n, 256), pairs) : INT64_MAX);
  return most;
}

/// 64 images of ViT-L-14 on an H200, which holds 15 wide clusters: as many waves as with 66 pairs
/// alone.
TEST(GemmTileSchedule, Of64ImagesAreAsManyWavesAsOfPairsAlone) {
  for (const int64_t n : {1024, 3072, 4096}) {
    const auto schedule = kWide.schedule(16448, n, 132, 15);
    EXPECT_EQ(schedule.clusters, 15u);
    EXPECT_EQ(schedule.pairs, 6u);
    EXPECT_EQ(schedule.clusterRows, 30);
    EXPECT_EQ(schedule.waves, n / 256);
  }
}

TEST(GemmTileSchedule, HaveTheFewestWavesAndThenTheMostRowsOfClusters) {
  for (const int64_t m : {1, 256, 257, 513, 2056, 12336, 16448})
    for (const int64_t n : {8, 256, 264, 776, 1024})
      for (const uint32_t atOnce : {1u, 2u, 14u, 15u, 16u, 17u}) {
        const uint32_t blocks = kWide.grid(m, n, 132)[0];
        int64_t least = INT64_MAX, mostRows = 0;
        for (int64_t clusters = 1; clusters <= std::min(atOnce, blocks / 8); ++clusters)
          for (int64_t rows = 0; (rows - 1) * 512 < m; ++rows)
            if (const int64_t waves = wavesOf(clusters, (blocks - 8 * clusters) / 2, rows, m, n);
                waves < least || (waves == least && rows > mostRows)) {
              least = waves;
              mostRows = rows;
            }
        const auto schedule = kWide.schedule(m, n, blocks, atOnce);
        EXPECT_GE(schedule.clusters, 1u);
        EXPECT_LE(schedule.clusters, atOnce);
        EXPECT_EQ(schedule.clusters * kWideClusterCtas + schedule.pairs * 2, blocks);
        EXPECT_EQ(schedule.waves, least) << m << " x " << n << ", room " << atOnce;
        EXPECT_EQ(schedule.waves,
                  wavesOf(schedule.clusters, schedule.pairs, schedule.clusterRows, m, n));
        EXPECT_EQ(schedule.clusterRows, mostRows) << m << " x " << n;
      }
}

/// One cluster less saves a turn.
TEST(GemmTileSchedule, DoNotTakeAllClusters) {
  const auto schedule = kWide.schedule(12336, 1024, 132, 15); // 48 images.
  EXPECT_EQ(schedule.clusters, 14u);
  EXPECT_EQ(schedule.waves, 3);
}

TEST(GemmTileSchedule, GridsHaveAWideClusterAtLeast) {
  EXPECT_EQ(kWide.grid(1, 8, 132)[0], kWideClusterCtas);
  const auto schedule = kWide.schedule(1000, 512, 8, 15);
  EXPECT_EQ(schedule.clusters, 1u);
  EXPECT_EQ(schedule.pairs, 0u);
  EXPECT_EQ(schedule.clusterRows, 2);
}

/// Tests on a GPU rely on this: at these sizes, clusters and pairs both have tiles, whatever the
/// number of clusters.
TEST(GemmTileSchedule, OfTestsOnAGpuArePairsToo) {
  const auto expectBoth = [](int64_t m, int64_t n) {
    const auto schedule = kWide.schedule(m, n, kWide.grid(m, n, 12)[0], 15);
    EXPECT_GT(schedule.clusterRows, 0) << m << " x " << n;
    EXPECT_LT(schedule.clusterRows * 512, m) << m << " x " << n;
  };
  for (const int64_t n : {80, 128, 264}) // The sizes of the chains.
    expectBoth(1100, n);
  expectBoth(600, 520);
  expectBoth(600, 776); // N exceeds M.
  expectBoth(900, 520);
}

/// Only the largest persistent tiles have wide clusters.
TEST(GemmTileSchedule, AreOfLargeTiles) {
  for (const GemmTile &tile : gemmTiles())
    EXPECT_EQ(tile.hasWideClusters(), tile.name == "128x256_persistent") << tile.name;
}

} // namespace
} // namespace cgc
