// The model was fitted to bench/products.cu's times of every tile at 20 shapes on an H200
// (docs/performance.md): its choice is within 10 % of the best tile at each, 2 % on average.
#include "backend/product_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cgc::backend {
namespace {

constexpr double kSms = 132;
/// Clusters of 3 and more do not fill every group of SMs.
constexpr double kSmsInLargeClusters = 120;
/// Less what the kernels declare themselves.
constexpr uint32_t kSharedOfSm = 225 << 10, kSharedOfHalf = 112 << 10;

/// Clock cycles of the product.
double estimate(const ProductTile &tile, uint32_t stages, int64_t tokens, int64_t features,
                int64_t depth) {
  const double area = double(tile.features) * tile.tokens;
  const double blocks = double(tile.blocksX(features)) * tile.blocksY(tokens);
  const double perSm = std::ceil(blocks / (tile.split < 3 ? kSms : kSmsInLargeClusters));
  const double steps = double((depth + 63) / 64) / tile.split;
  // One step of 64 columns: multiplied at 4096 operations a clock, fetched at 46 bytes a clock, and
  // never faster than the ring covers the latency of memory.
  const double latency = 1700;
  const double multiply = area * 64 * 2 / 4096 * 1.16;
  const double fetch = (tile.features + tile.tokens) * 64 * 2 / 46.0;
  const double wait = latency / (stages - 1);
  const double epilogue = area / 128 * 27 + (tile.split > 1 ? 1000 + 550 * double(tile.split) : 0);
  const bool fitsHalf = tile.sharedBytes(stages) <= kSharedOfHalf;
  // Blocks of a cluster that fit together land on one SM, while others are idle.
  const double together = perSm == 1 && tile.split > 1 && fitsHalf && blocks > kSms / 4 ? 2 : 1;
  const bool shares = tile.features <= 128 && tile.tokens <= 136 && perSm > 1 && fitsHalf;
  if (shares) // Two blocks on an SM hide each other's latency and part of the epilogue.
    return perSm * (steps * std::max({multiply, fetch, wait / 2}) + epilogue * 0.8) + latency;
  return perSm * (steps * std::max({multiply * together, fetch * together, wait}) + epilogue +
                  latency * (perSm > 1 ? 0.6 : 1));
}

} // namespace

TileChoice chooseTile(std::span<const ProductTile> tiles, int64_t tokens, int64_t features,
                      int64_t depth) {
  TileChoice best{};
  double least = std::numeric_limits<double>::infinity();
  for (const ProductTile &tile : tiles)
    for (const uint32_t memory : {kSharedOfHalf, kSharedOfSm}) {
      const uint32_t fit = (memory - 1024) / ((tile.features + tile.tokens) * 128);
      const auto steps = uint32_t(((depth + 63) / 64 + tile.split - 1) / tile.split);
      const uint32_t stages = std::min({fit, std::max(steps, 2u), kProductMaxStages});
      if (stages < 2 || tile.sharedBytes(stages) > memory || !tile.takes(depth))
        continue;
      if (const double clocks = estimate(tile, stages, tokens, features, depth); clocks < least) {
        least = clocks;
        best = {&tile, stages};
      }
    }
  return best;
}

} // namespace cgc::backend
