// The model was fitted to bench/products.cu's times of every tile at 20 shapes on an H200, one
// kernel at a time; what it says of clusters was then set by hand, to what was fastest in chains of
// a tower's kernels (docs/performance.md). `cgc tune` measures instead.
#include "backend/product_tile.h"

#include "backend/kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgc::backend {
namespace {

/// Clusters of 3 and more do not fill every group of SMs.
constexpr double kShareInLargeClusters = 120.0 / 132;
/// Less what the kernels declare themselves.
constexpr uint32_t kSharedOfSm = 224 << 10, kSharedOfHalf = 112 << 10;

/// Clock cycles for which the tensor cores multiply 64 columns of so many sums, at 4096 operations
/// a clock.
double multiplying(double sums) {
  return sums * 64 * 2 / 4096;
}

/// Clock cycles of a persistent kernel. Fitted by hand to its times at 2056 and 16448 tokens.
double estimatePersistent(const ProductTile &tile, int64_t tokens, int64_t features, int64_t depth,
                          int64_t multiprocessors) {
  const double tiles =
      std::ceil(double(tokens) / tile.tokens) * std::ceil(double(features) / (2 * tile.features));
  const double clusters = tile.grid(tokens, features, uint32_t(multiprocessors))[0] / 2;
  const double steps = double((depth + 63) / 64);
  return std::ceil(tiles / clusters) *
             (steps * multiplying(double(tile.features) * tile.tokens) * 1.2 + 3000) +
         4000;
}

/// Clock cycles of the product.
double estimate(const ProductTile &tile, uint32_t stages, int64_t tokens, int64_t features,
                int64_t depth, int64_t multiprocessors) {
  if (tile.persistent)
    return estimatePersistent(tile, tokens, features, depth, multiprocessors);
  const double area = double(tile.features) * tile.tokens;
  const auto grid = tile.grid(tokens, features, uint32_t(multiprocessors));
  const double blocks = double(grid[0]) * grid[1];
  const double sms =
      std::round(double(multiprocessors) * (tile.split < 3 ? 1 : kShareInLargeClusters));
  const double perSm = std::ceil(blocks / sms);
  const double steps = double((depth + 63) / 64) / tile.split;
  // One step of 64 columns: multiplied, fetched at 46 bytes a clock, and never faster than the ring
  // covers the latency of memory.
  const double latency = 1700;
  const double multiply = multiplying(area) * 1.16;
  const double fetch = (tile.features + tile.tokens) * 64 * 2 / 46.0;
  const double wait = latency / (stages - 1);
  const double epilogue = area / 128 * 27 + (tile.split > 1 ? 1000 + 550 * double(tile.split) : 0);
  const bool fitsHalf = tile.sharedBytes(stages) <= kSharedOfHalf;
  // Blocks of a cluster that fit together land on one SM, while others are idle.
  const double together = perSm == 1 && tile.split > 1 && fitsHalf && blocks > sms / 4 ? 2 : 1;
  const bool shares = tile.features <= 128 && tile.tokens <= 136 && perSm > 1 && fitsHalf;
  if (shares) // Two blocks on an SM hide each other's latency and part of the epilogue.
    return perSm * (steps * std::max({multiply, fetch, wait / 2}) + epilogue * 0.8) + latency;
  return perSm * (steps * std::max({multiply * together, fetch * together, wait}) + epilogue +
                  latency * (perSm > 1 ? 0.6 : 1));
}

} // namespace

std::vector<TileChoice> tileChoices(std::span<const ProductTile> tiles, int64_t tokens,
                                    int64_t features, int64_t depth, int64_t multiprocessors) {
  std::vector<std::pair<double, TileChoice>> choices;
  for (const ProductTile &tile : tiles) {
    if (tokens <= kNormTokens && tile.persistent)
      continue; // Not measured for so few.
    for (const uint32_t memory : {kSharedOfHalf, kSharedOfSm}) {
      if (tile.persistent && memory != kSharedOfSm)
        continue; // Its registers allow one block on an SM.
      const auto steps = uint32_t(((depth + 63) / 64 + tile.split - 1) / tile.split);
      const uint32_t stages =
          tile.stagesIn(memory, std::min(std::max(steps, 2u), kProductMaxStages));
      const bool isLikeTheLast = !choices.empty() && choices.back().second.tile == &tile &&
                                 choices.back().second.stages == stages;
      if (stages < 2 || !tile.takes(depth) || isLikeTheLast)
        continue;
      choices.push_back({estimate(tile, stages, tokens, features, depth, multiprocessors),
                         {&tile, stages, uint32_t(multiprocessors)}});
    }
  }
  std::ranges::stable_sort(choices, {}, &std::pair<double, TileChoice>::first);
  std::vector<TileChoice> sorted;
  for (const auto &[clocks, choice] : choices)
    sorted.push_back(choice);
  return sorted;
}

TiledKernels productKernels() {
  return {"product", productTiles()};
}

TiledKernels normProductKernels() {
  return {"product_norm", productNormTiles()};
}

std::optional<TiledKernels> tiledKernelsOf(const KernelLaunch &launch) {
  for (const TiledKernels &family : {productKernels(), normProductKernels()})
    for (const DType dtype : {DType::F16, DType::BF16})
      for (const ProductTile &tile : family.tiles)
        if (launch.kernel == kernelNamed(family.name, dtype) + "_" + std::string(tile.name))
          return family;
  return std::nullopt;
}

void setTile(KernelLaunch &launch, const TiledKernels &family, DType dtype,
             const TileChoice &choice) {
  const ProductTile &tile = *choice.tile;
  const KernelLaunch row = launchOf(kernelNamed(family.name, dtype) + "_" + std::string(tile.name));
  launch.kernel = row.kernel;
  launch.abiHash = row.abiHash;
  std::ranges::copy(tile.grid(launch.ints[0], launch.ints[1], choice.multiprocessors), launch.grid);
  launch.block[0] = tile.threads();
  launch.sharedBytes = tile.sharedBytes(choice.stages);
}

} // namespace cgc::backend
