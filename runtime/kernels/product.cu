// product: the kernels of all tiles, for f16 and bf16.
#include "runtime/kernels/product.cuh"

namespace cgc {
namespace {

constexpr ProductTile kTiles[] = {
#define CGC_PRODUCT_TILE(F, N, SPLIT, BLOCKS) {#F "x" #N "_" #SPLIT, F, N, SPLIT},
#include "runtime/kernels/product_tiles.def"
};

} // namespace

std::span<const ProductTile> productTiles() {
  return kTiles;
}

#define CGC_PRODUCT_KERNEL(DTYPE, TYPE, F, N, SPLIT, BLOCKS)                                       \
  const void *product_##DTYPE##_##F##x##N##_##SPLIT##Function() {                                  \
    return reinterpret_cast<const void *>(&product<TYPE, F, N, SPLIT, BLOCKS, false>);                    \
  }                                                                                                \
  Result<KernelParameters> product_##DTYPE##_##F##x##N##_##SPLIT##Bind(const KernelArguments &a) { \
    return bindProduct<TYPE, F, N, SPLIT, false>(a);                                                      \
  }
#define CGC_PRODUCT_TILE(...) CGC_PRODUCT_KERNEL(f16, __half, __VA_ARGS__)
#include "runtime/kernels/product_tiles.def"
#define CGC_PRODUCT_TILE(...) CGC_PRODUCT_KERNEL(bf16, __nv_bfloat16, __VA_ARGS__)
#include "runtime/kernels/product_tiles.def"

} // namespace cgc
