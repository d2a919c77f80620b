// Which tile a product gets when nothing has been measured: by a model of the H200.
#pragma once

#include "runtime/kernels/product.h"

namespace cgc::backend {

/// A tile and how much of the depth is on its way at a time.
struct TileChoice {
  const ProductTile *tile;
  uint32_t stages;
};

/// The choice among `tiles` that the model holds to be fastest for x [tokens, depth] times
/// w [features, depth].
TileChoice chooseTile(std::span<const ProductTile> tiles, int64_t tokens, int64_t features,
                      int64_t depth);

} // namespace cgc::backend
