// The order of a product's tiles, and their launches.
#include "backend/product_tile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cgc::backend {
namespace {

constexpr int64_t kMultiprocessors = 132;

bool hasPairs(const std::vector<TileChoice> &choices) {
  return std::ranges::any_of(choices, [](const TileChoice &choice) { return choice.tile->pairs; });
}

TEST(ProductTile, PairsAreForMoreTokensThanAreNormalised) {
  EXPECT_FALSE(hasPairs(tileChoices(productTiles(), kNormTokens, 4096, 1024, kMultiprocessors)));
  EXPECT_TRUE(hasPairs(tileChoices(productTiles(), kNormTokens + 1, 4096, 1024, kMultiprocessors)));
}

TEST(ProductTile, PairsStayForAllTiles) {
  const std::vector<TileChoice> choices =
      tileChoices(productTiles(), 64 * 257, 4096, 1024, kMultiprocessors);
  EXPECT_EQ(choices.front().tile->name, "128x256_pairs");
  for (const TileChoice &choice : choices) {
    if (!choice.tile->pairs)
      continue;
    KernelLaunch launch;
    launch.ints = {64 * 257, 4096, 1024, 0};
    setTile(launch, productKernels(), DType::F16, choice);
    EXPECT_EQ(launch.grid[0], kMultiprocessors) << choice.tile->name;
    EXPECT_EQ(launch.grid[1], 1u);
  }
}

TEST(ProductTile, PairsAreNoMoreThanTheirTiles) {
  const auto choices = tileChoices(productTiles(), 1600, 520, 520, kMultiprocessors);
  const auto pairs = std::ranges::find_if(
      choices, [](const TileChoice &choice) { return choice.tile->name == "128x256_pairs"; });
  ASSERT_NE(pairs, choices.end());
  KernelLaunch launch;
  launch.ints = {1600, 520, 520, 0};
  setTile(launch, productKernels(), DType::F16, *pairs);
  // 7 times 256 tokens, 3 times 256 features, two blocks each.
  EXPECT_EQ(launch.grid[0], 42u);
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
