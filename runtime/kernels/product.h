// product: y = activation(x w^T + bias) + residual on Hopper's tensor cores: the tiles there are, and
// the launch shape that the kernels expect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace cgc {

/// One way to cut the product of x [tokens, depth] and w [features, depth] into blocks. Weights are
/// the left operand of the tensor cores, so that a tile may have as few tokens as 8.
struct ProductTile {
  std::string_view name; ///< Kernel row: "product_f16_" + name.
  uint32_t features, tokens;
  uint32_t stages; ///< Tiles of 64 columns that are on their way at a time.
  /// The blocks of a cluster: `split` share a tile, each with a part of the depth; or `shareX`
  /// neighbours among the features have the same tokens, each fetches a part of them for all; or
  /// `shareW` neighbours among the tokens have the same features. Two of the three are 1.
  uint32_t split, shareX, shareW;

  /// Grid for this many features and tokens.
  constexpr uint32_t blocksX(int64_t count) const {
    const int64_t tiles = (count + features - 1) / features;
    return uint32_t((tiles + shareX - 1) / shareX * shareX * split);
  }
  constexpr uint32_t blocksY(int64_t count) const {
    const int64_t tiles = (count + tokens - 1) / tokens;
    return uint32_t((tiles + shareW - 1) / shareW * shareW);
  }
  /// A warpgroup for each 64 features and a warp that copies.
  constexpr uint32_t threads() const { return features * 2 + 32; }
  /// A stage holds 64 columns of both operands; the results are staged in the same memory, padded
  /// against bank conflicts. 1024 more, to begin at a multiple of it.
  constexpr uint32_t sharedBytes() const {
    const uint32_t operands = stages * (features + tokens) * 128;
    const uint32_t results =
        split == 1 ? features / 64 * tokens * (64 + 8) * 2 : tokens * (features + 4) * 4;
    return std::max(operands, results) + 1024;
  }
};

/// All tiles, in the order of product_tiles.def.
std::span<const ProductTile> productTiles();

} // namespace cgc
