// The order of a product's tiles, and their launches.
#include "backend/product_tile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cgc::backend {
namespace {

constexpr int64_t kMultiprocessors = 132;

bool hasPersistent(const std::vector<TileChoice> &choices) {
  return std::ranges::any_of(choices,
                             [](const TileChoice &choice) { return choice.tile->persistent; });
}

TEST(ProductTile, PersistentIsForManyTokens) {
  for (const auto &tiles : {productTiles(), productNormTiles()}) {
    EXPECT_FALSE(hasPersistent(tileChoices(tiles, kNormTokens, 4096, 1024, kMultiprocessors)));
    EXPECT_TRUE(hasPersistent(tileChoices(tiles, kNormTokens + 1, 4096, 1024, kMultiprocessors)));
  }
}

/// Whatever its moments, some tile takes each depth.
TEST(ProductTile, PersistentOnesNormalisePairsOfGroupsUpTo32) {
  for (const int64_t depth : {8, 64, 72, 960, 1024, 2048, 2056, 4096}) {
    const auto choices = tileChoices(productNormTiles(), 2056, 4096, depth, kMultiprocessors);
    EXPECT_FALSE(choices.empty()) << depth;
    EXPECT_EQ(hasPersistent(choices), depth == 72 || depth == 1024 || depth == 2048) << depth;
  }
}

TEST(ProductTile, PersistentBlocksStayForAllTiles) {
  const std::vector<TileChoice> choices =
      tileChoices(productTiles(), 64 * 257, 4096, 1024, kMultiprocessors);
  EXPECT_EQ(choices.front().tile->name, "128x256_persistent");
  for (const TileChoice &choice : choices) {
    if (!choice.tile->persistent)
      continue;
    KernelLaunch launch;
    launch.ints = {64 * 257, 4096, 1024, 0};
    setTile(launch, productKernels(), DType::F16, choice);
    EXPECT_EQ(launch.grid[0], kMultiprocessors) << choice.tile->name;
    EXPECT_EQ(launch.grid[1], 1u);
  }
}

TEST(ProductTile, PersistentBlocksAreNoMoreThanTheirTiles) {
  const auto choices = tileChoices(productTiles(), 1600, 520, 520, kMultiprocessors);
  const auto persistent = std::ranges::find_if(
      choices, [](const TileChoice &choice) { return choice.tile->name == "128x256_persistent"; });
  ASSERT_NE(persistent, choices.end());
  KernelLaunch launch;
  launch.ints = {1600, 520, 520, 0};
  setTile(launch, productKernels(), DType::F16, *persistent);
  // 7 times 256 tokens, 3 times 256 features, two blocks each.
  EXPECT_EQ(launch.grid[0], 42u);
}

TEST(ProductTile, PersistentBlocksHaveAllMemoryOfAnSm) {
  for (const auto &[tokens, features] : {std::pair(1542, 3072), {3080, 768}, {16448, 4096}}) {
    std::vector<const ProductTile *> seen;
    for (const TileChoice &choice :
         tileChoices(productTiles(), tokens, features, 1024, kMultiprocessors))
      if (choice.tile->persistent) {
        EXPECT_GT(choice.stages, 2u) << choice.tile->name;
        EXPECT_EQ(std::ranges::count(seen, choice.tile), 0) << choice.tile->name;
        seen.push_back(choice.tile);
      }
    EXPECT_FALSE(seen.empty());
  }
}

TEST(ProductTile, FitsSharedMemory) {
  for (const int64_t tokens : {1, 77, 257, 1232, 2056, 16448})
    for (const auto &tiles : {productTiles(), productNormTiles()})
      for (const TileChoice &choice : tileChoices(tiles, tokens, 3072, 768, kMultiprocessors)) {
        EXPECT_GE(choice.stages, 2u);
        EXPECT_LE(choice.tile->sharedBytes(choice.stages), 225u << 10) << choice.tile->name;
      }
}

} // namespace
} // namespace cgc::backend
