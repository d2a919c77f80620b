// rankedKernels(): the ranking of a GEMM's kernels, and their launches.
#include "backend/gemm_model.h"

#include "backend/gemm_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

namespace cgc::backend {
namespace {

constexpr int64_t kMultiprocessors = 132;

enum Family { kGemm, kGemmNorm };

GemmProblem problemOf(Family family, int64_t m, int64_t n, int64_t k) {
  GemmProblem problem{.m = m, .n = n, .k = k};
  if (family == kGemmNorm)
    problem.epilogue.normEps = 1e-5;
  return problem;
}
std::vector<GemmKernelChoice> ranked(Family family, int64_t m, int64_t n, int64_t k) {
  return rankedKernels(problemOf(family, m, n, k), {Arch::Sm90a, kMultiprocessors});
}

bool hasPersistent(const std::vector<GemmKernelChoice> &choices) {
  return std::ranges::any_of(
      choices, [](const GemmKernelChoice &choice) { return choice.kernel.tile->persistent; });
}

TEST(GemmModel, PersistentIsForManyRows) {
  for (const Family family : {kGemm, kGemmNorm}) {
    EXPECT_FALSE(hasPersistent(ranked(family, kNonPersistentMaxM, 4096, 1024)));
    EXPECT_TRUE(hasPersistent(ranked(family, kNonPersistentMaxM + 1, 4096, 1024)));
  }
}

/// Some tile of gemm_norm takes every K, whatever its number of groups.
TEST(GemmModel, PersistentOnesNormalizePairsOfGroupsUpTo32) {
  for (const int64_t k : {8, 64, 72, 960, 1024, 2048, 2056, 4096}) {
    const auto choices = ranked(kGemmNorm, 2056, 4096, k);
    EXPECT_FALSE(choices.empty()) << k;
    EXPECT_EQ(hasPersistent(choices), k == 72 || k == 1024 || k == 2048) << k;
  }
}

/// GEMMs for which a tuner that tried all tiles found one clearly fastest
/// (docs/log/2026-11-22-tile-model.md).
TEST(GemmModel, TheModelPicksWhatWasMeasuredToBeFastest) {
  struct Site {
    Family family;
    int64_t m, n, k;
    std::string_view name;
    uint32_t stages;
  };
  for (const Site &site : std::initializer_list<Site>{
           {kGemmNorm, 77, 2304, 768, "64x80_1", 12},
           {kGemmNorm, 77, 3072, 768, "64x80_1", 12},
           {kGemm, 77, 768, 768, "64x80_2", 6},
           {kGemm, 154, 768, 768, "64x32_4", 3},
           {kGemmNorm, 1232, 3072, 768, "128x112_1", 3},
           {kGemm, 1232, 768, 3072, "128x112_2", 7},
           {kGemm, 1, 1024, 1024, "64x8_4", 4},
           {kGemmNorm, 257, 3072, 1024, "64x136_1", 8},
           {kGemm, 257, 1024, 4096, "128x88_4", 8},
           {kGemmNorm, 514, 4096, 1024, "128x136_1", 6},
           {kGemmNorm, 2056, 3072, 1024, "128x192_persistent", 4},
           {kGemmNorm, 2056, 4096, 1024, "128x176_persistent", 4},
           {kGemm, 2056, 1024, 4096, "128x144_persistent", 5},
       }) {
    const GemmKernelChoice choice = ranked(site.family, site.m, site.n, site.k).front();
    EXPECT_EQ(choice.kernel.tile->name, site.name) << site.m << " x " << site.n;
    EXPECT_EQ(choice.stages, site.stages) << site.name;
  }
}

/// The GEMMs of ViT-L-14 at the batches of docs/results.md and between. A change of the model's
/// choices changes the speed of a tower and has to be measured.
TEST(GemmModel, LayersOfTowersHaveTheseTiles) {
  struct Choice {
    std::string_view name;
    uint32_t stages;
  };
  struct Layer {
    int64_t m, width;
    Choice qkv, projection, fc1, fc2;
  };
  for (const Layer &layer : std::initializer_list<Layer>{
           // 1, 2, 4, 8 and 16 texts.
           {77, 768, {"64x80_1", 12}, {"64x80_2", 6}, {"64x80_1", 12}, {"64x80_4", 12}},
           {154, 768, {"64x80_1", 12}, {"64x32_4", 3}, {"64x80_1", 12}, {"64x80_4", 12}},
           {308, 768, {"64x136_1", 8}, {"64x80_1", 12}, {"128x88_1", 8}, {"64x80_2", 12}},
           {616, 768, {"128x88_1", 8}, {"64x80_1", 12}, {"128x136_1", 6}, {"128x136_4", 6}},
           {1232, 768, {"192x112_1", 5}, {"64x136_1", 8}, {"128x112_1", 3}, {"128x112_2", 7}},
           // 1, 2, 4, 8, 16 and 64 images.
           {257, 1024, {"64x136_1", 8}, {"64x80_2", 8}, {"64x136_1", 8}, {"128x88_4", 8}},
           {514, 1024, {"128x112_1", 7}, {"64x80_1", 12}, {"128x136_1", 6}, {"64x136_2", 8}},
           {1028, 1024, {"128x112_1", 3}, {"64x136_1", 8}, {"128x136_1", 3}, {"128x136_2", 6}},
           {2056,
            1024,
            {"128x192_persistent", 4},
            {"128x144_persistent", 5},
            {"128x176_persistent", 4},
            {"128x144_persistent", 5}},
           {4112,
            1024,
            {"128x192_persistent", 4},
            {"128x144_persistent", 5},
            {"128x176_persistent", 4},
            {"256x128_1", 4}},
           {16448,
            1024,
            {"128x256_persistent", 3},
            {"128x256_persistent", 3},
            {"128x256_persistent", 3},
            {"128x256_persistent", 3}},
           // Close decisions: 64 images of ViT-B-32 and 3 of ViT-L-14-336.
           {3200,
            768,
            {"128x256_persistent", 3},
            {"128x176_persistent", 4},
            {"128x176_persistent", 4},
            {"128x176_persistent", 4}},
           {1731,
            1024,
            {"128x176_persistent", 4},
            {"128x144_persistent", 5},
            {"128x256_persistent", 3},
            {"128x144_persistent", 5}},
       }) {
    const auto expectChoice = [&](Family family, int64_t n, int64_t k, const Choice &expected) {
      const GemmKernelChoice choice = ranked(family, layer.m, n, k).front();
      EXPECT_EQ(choice.kernel.tile->name, expected.name) << layer.m << " x " << n;
      EXPECT_EQ(choice.stages, expected.stages) << layer.m << " x " << n;
    };
    const int64_t width = layer.width;
    expectChoice(kGemmNorm, 3 * width, width, layer.qkv);
    expectChoice(kGemm, width, width, layer.projection);
    expectChoice(kGemmNorm, 4 * width, width, layer.fc1);
    expectChoice(kGemm, width, 4 * width, layer.fc2);
  }
}

/// A K of few steps needs no more stages than half of the memory holds.
TEST(GemmModel, ChoicesAreUnique) {
  for (const int64_t m : {1, 77, 1232, 2056})
    for (const int64_t k : {64, 128, 256, 768, 1024, 4096})
      for (const Family family : {kGemm, kGemmNorm}) {
        std::set<std::pair<const GemmTile *, uint32_t>> seen;
        for (const GemmKernelChoice &choice : ranked(family, m, 768, k))
          EXPECT_TRUE(seen.emplace(choice.kernel.tile, choice.stages).second)
              << choice.kernel.tile->name << " with " << choice.stages << " stages, " << k;
      }
}

TEST(GemmModel, PersistentBlocksStayForAllTiles) {
  const std::vector<GemmKernelChoice> choices = ranked(kGemm, 64 * 257, 4096, 1024);
  EXPECT_EQ(choices.front().kernel.tile->name, "128x256_persistent");
  for (const GemmKernelChoice &choice : choices) {
    if (!choice.kernel.tile->persistent)
      continue;
    const KernelLaunch launch = gemmLaunch(problemOf(kGemm, 64 * 257, 4096, 1024), choice);
    EXPECT_EQ(launch.grid[0], kMultiprocessors) << choice.kernel.tile->name;
    EXPECT_EQ(launch.grid[1], 1u);
  }
}

TEST(GemmModel, PersistentBlocksAreNoMoreThanTheirTiles) {
  const auto choices = ranked(kGemm, 1600, 520, 520);
  const auto persistent = std::ranges::find_if(choices, [](const GemmKernelChoice &choice) {
    return choice.kernel.tile->name == "128x256_persistent";
  });
  ASSERT_NE(persistent, choices.end());
  const KernelLaunch launch = gemmLaunch(problemOf(kGemm, 1600, 520, 520), *persistent);
  // 7 tiles of 256 along M, 3 of 256 along N, two CTAs each.
  EXPECT_EQ(launch.grid[0], 42u);
}

TEST(GemmModel, PersistentBlocksHaveAllMemoryOfAnSm) {
  for (const auto &[m, n] : {std::pair(1542, 3072), {3080, 768}, {16448, 4096}}) {
    std::vector<const GemmTile *> seen;
    for (const GemmKernelChoice &choice : ranked(kGemm, m, n, 1024))
      if (choice.kernel.tile->persistent) {
        EXPECT_GT(choice.stages, 2u) << choice.kernel.tile->name;
        EXPECT_EQ(std::ranges::count(seen, choice.kernel.tile), 0) << choice.kernel.tile->name;
        seen.push_back(choice.kernel.tile);
      }
    EXPECT_FALSE(seen.empty());
  }
}

/// With two stages, results and split-K partial accumulators may need more memory than operands.
TEST(GemmModel, SharedMemoryHasRoomForResults) {
  struct Row {
    std::string_view name;
    uint32_t two, three;
  };
  for (const Row &row : std::initializer_list<Row>{
           {"64x8_4", 18432, 27648},
           {"64x80_8", 36864, 55296},
           // 4 x 3 groups of 8 rows of partial accumulators, 3 of results.
           {"128x88_4", 4 * 3 * 128 * 32 + 2 * 3 * 8 * 144, 82944},
           {"128x88_2", 2 * 6 * 128 * 32 + 2 * 6 * 8 * 144, 82944},
           {"128x136_4", 4 * 5 * 128 * 32 + 2 * 5 * 8 * 144, 101376},
           {"128x136_2", 2 * 9 * 128 * 32 + 2 * 9 * 8 * 144, 101376},
           {"128x136_1", 67584, 101376},
           {"256x128_1", 98304, 147456},
           {"128x256_persistent", 98304 + 65536, 147456 + 65536},
       }) {
    const auto tile = std::ranges::find(gemmTiles(), row.name, &GemmTile::name);
    ASSERT_NE(tile, gemmTiles().end()) << row.name;
    EXPECT_EQ(tile->sharedBytes(2), row.two + 1024) << row.name;
    EXPECT_EQ(tile->sharedBytes(3), row.three + 1024) << row.name;
  }
  const auto split = std::ranges::find(gemmTiles(), "128x136_4", &GemmTile::name);
  EXPECT_EQ(split->stagesIn(93440 + 1024), 2u);
  EXPECT_EQ(split->stagesIn(93440 + 1023), 1u);
}

/// Before Hopper, the tiles of mma kernels alone are ranked; on it, none of them.
TEST(GemmModel, RanksTheKernelsOfTheArchitecture) {
  for (const Family family : {kGemm, kGemmNorm})
    for (const auto &[m, k] : {std::pair(1, 8), {77, 768}, {12544, 3072}}) {
      for (const GemmKernelChoice &choice : ranked(family, m, 768, k))
        EXPECT_FALSE(choice.kernel.tile->mma) << choice.name();
      std::set<std::pair<const GemmTile *, uint32_t>> seen;
      std::set<const GemmTile *> tiles;
      for (const GemmKernelChoice &choice :
           rankedKernels(problemOf(family, m, 768, k), {Arch::Sm80, 108})) {
        EXPECT_TRUE(choice.kernel.tile->mma) << choice.name();
        EXPECT_TRUE(seen.emplace(choice.kernel.tile, choice.stages).second) << choice.name();
        EXPECT_LE(choice.kernel.tile->sharedBytes(choice.stages), kMmaMaxSharedBytes);
        tiles.insert(choice.kernel.tile);
      }
      EXPECT_EQ(tiles.size(), 6u);
    }
}

TEST(GemmModel, MmaTilesAreLargeForManyRowsOnly) {
  const auto tileOf = [](int64_t m, int64_t n, int64_t k) {
    return rankedKernels(problemOf(kGemm, m, n, k), {Arch::Sm80, 108}).front().kernel.tile->name;
  };
  EXPECT_EQ(tileOf(12544, 3072, 768), "128x128_mma");
  EXPECT_EQ(tileOf(16448, 4096, 1024), "128x128_mma");
  EXPECT_EQ(tileOf(1, 1024, 1024), "64x16_mma");
}

TEST(GemmModel, FitsSharedMemory) {
  for (const int64_t m : {1, 77, 257, 1232, 2056, 16448})
    for (const Family family : {kGemm, kGemmNorm})
      for (const GemmKernelChoice &choice : ranked(family, m, 3072, 768)) {
        EXPECT_GE(choice.stages, 2u);
        EXPECT_LE(choice.kernel.tile->sharedBytes(choice.stages), 225u << 10)
            << choice.kernel.tile->name;
      }
}

} // namespace
} // namespace cgc::backend
