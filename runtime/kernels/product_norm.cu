// product_norm: the tiles of products that normalise the rows of x themselves.
#include "runtime/kernels/product.h"

namespace cgc {
namespace {

constexpr ProductTile kTiles[] = {
#define CGC_PRODUCT_TILE(F, N, SPLIT, BLOCKS) {#F "x" #N "_" #SPLIT, F, N, SPLIT},
#include "runtime/kernels/product_norm_tiles.def"
};

} // namespace

std::span<const ProductTile> productNormTiles() {
  return kTiles;
}

} // namespace cgc
