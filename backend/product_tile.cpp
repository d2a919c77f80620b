// Estimates how long each tile takes, for the order of choices, and makes launches of tiles. The
// model and all its numbers were fitted to what a tuner that tried all tiles measured in the
// towers of ViT-L-14, at 1, 2, 4 and 16 texts and at 1, 2 and 8 images, on an H200
// (docs/log/2026-11-22-tile-model.md): so that what it holds to be fastest is, or nearly; before
// ends became shorter and product_norm had tiles of 256 tokens, of which 64 images were measured.
// `cgc tune` measures the first of its order instead.
#include "backend/product_tile.h"

#include "backend/kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgc::backend {
namespace {

constexpr uint32_t kSharedOfHalf = kProductMemory / 2;

// All in clock cycles.

/// Until the first operands have come.
constexpr double kLatency = 1450;

/// How long the tensor cores multiply 64 columns of so many sums, at 4096 operations a clock.
double multiplying(double sums) {
  return sums * 64 * 2 / 4096;
}
/// How long an SM fetches 64 columns of so many rows, at 54 bytes a clock.
double fetching(double rows) {
  return rows * 64 * 2 / 54;
}

/// For how many wide clusters there is room: for 15 on an H200 of 132 SMs. The kernel's bind asks
/// the GPU that a plan is loaded on.
uint32_t wideClustersOf(int64_t multiprocessors) {
  return std::max(uint32_t(multiprocessors * 15 / 132), 1u);
}

double estimatePersistent(const ProductTile &tile, int64_t tokens, int64_t features, int64_t depth,
                          int64_t multiprocessors) {
  const uint32_t blocks = tile.grid(tokens, features, uint32_t(multiprocessors))[0];
  const auto [ofTokens, ofFeatures] = tile.tilesOfPairs(tokens, features);
  const double turns =
      tile.hasWideClusters()
          ? double(tile.shares(tokens, features, blocks, wideClustersOf(multiprocessors)).turns)
          : std::ceil(double(ofTokens) * double(ofFeatures) / (blocks / 2));
  const double steps = double((depth + 63) / 64), end = 1500 + 8.0 * tile.tokens;
  const double step =
      std::max(multiplying(double(tile.features) * tile.tokens),
               fetching(tile.features + tile.tokens / 2.0)); // At least a pair shares these.
  return turns * (steps * step + end);
}

double estimate(const ProductTile &tile, uint32_t stages, int64_t tokens, int64_t features,
                int64_t depth, int64_t multiprocessors) {
  if (tile.persistent)
    return estimatePersistent(tile, tokens, features, depth, multiprocessors);
  const double area = double(tile.features) * tile.tokens;
  const auto grid = tile.grid(tokens, features, uint32_t(multiprocessors));
  const double blocks = double(grid[0]) * grid[1];
  // Clusters of 3 and more do not fill every group of SMs.
  const double sms = std::round(double(multiprocessors) * (tile.split < 3 ? 1 : 125.0 / 132));
  const bool fitsHalf = tile.sharedBytes(stages) <= kSharedOfHalf;

  // The products of `together` blocks of an SM. Weights of the first stages have come before; later
  // ones wait for memory, too, which the ring does not cover.
  const auto steps = uint32_t(((depth + 63) / 64 + tile.split - 1) / tile.split);
  const uint32_t early = std::min(steps, stages);
  const auto products = [&](double together) {
    const double multiply = multiplying(area) * together;
    return early * std::max(multiply, fetching(tile.tokens) * together) +
           (steps - early) * std::max({multiply, fetching(tile.features + tile.tokens) * together,
                                       kLatency / (stages - 1)});
  };
  const double end = area / 128 * 22 + (tile.split > 1 ? 1100 + 370.0 * tile.split : 1000);

  const bool isForTwo = tile.features <= 128 && tile.tokens <= 136 && fitsHalf;
  if (isForTwo && blocks > sms) { // Two blocks on an SM hide part of each other's ends.
    const auto round = [&](double together) { return products(together) + together * end * 0.6; };
    const double full = std::floor(blocks / (2 * sms)), rest = blocks - full * 2 * sms;
    const double last = rest > 0 ? round(std::ceil(rest / sms)) : 0;
    return full * round(2) + last * (full > 0 ? 0.9 : 1) + kLatency;
  }
  // Blocks of a cluster that fit together land on one SM, while others are idle.
  const bool landTogether = tile.split > 1 && fitsHalf && blocks > sms / 4 && blocks <= sms;
  const double rounds = std::ceil(blocks / sms);
  return rounds * (products(landTogether ? 2 : 1) + end + kLatency * (rounds > 1 ? 1.8 : 1));
}

} // namespace

std::vector<TileChoice> tileChoices(std::span<const ProductTile> tiles, int64_t tokens,
                                    int64_t features, int64_t depth, int64_t multiprocessors) {
  std::vector<std::pair<double, TileChoice>> choices;
  for (const ProductTile &tile : tiles) {
    if (tokens <= kPersistentTokens && tile.persistent)
      continue;
    for (const uint32_t memory : {kSharedOfHalf, kProductMemory}) {
      if (tile.persistent && memory != kProductMemory)
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
