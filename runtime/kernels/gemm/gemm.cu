// product and product_norm: the kernels of all tiles, for f16 and bf16.
#include "runtime/kernels/gemm/gemm.cuh"
#include "runtime/kernels/gemm/gemm_persistent.cuh"

namespace cgc {
namespace {

#define CGC_PRODUCT_TILE(F, N, SPLIT, BLOCKS) {#F "x" #N "_" #SPLIT, F, N, SPLIT},
#define CGC_PRODUCT_PERSISTENT(N) {"128x" #N "_persistent", kPersistentFeatures, N, 1, true},
constexpr ProductTile kTiles[] = {
#include "runtime/kernels/gemm/tiles.def"
};
#define CGC_PRODUCT_TILE(F, N, SPLIT, BLOCKS) {#F "x" #N "_" #SPLIT, F, N, SPLIT, false, true},
#define CGC_PRODUCT_PERSISTENT(N) {"128x" #N "_persistent", kPersistentFeatures, N, 1, true, true},
constexpr ProductTile kNormTiles[] = {
#include "runtime/kernels/gemm/norm_tiles.def"
};

} // namespace

std::span<const ProductTile> productTiles() {
  return kTiles;
}

std::span<const ProductTile> productNormTiles() {
  return kNormTiles;
}

/// Both rows of a tile in one of the families.
#define CGC_PRODUCT_KERNELS(FAMILY, NORM, F, N, SPLIT, BLOCKS)                                     \
  CGC_KERNEL_OF(FAMILY##_f16_##F##x##N##_##SPLIT, (product<__half, F, N, SPLIT, BLOCKS, NORM>),    \
                (bindProduct<__half, F, N, SPLIT, NORM>))                                          \
  CGC_KERNEL_OF(FAMILY##_bf16_##F##x##N##_##SPLIT,                                                 \
                (product<__nv_bfloat16, F, N, SPLIT, BLOCKS, NORM>),                               \
                (bindProduct<__nv_bfloat16, F, N, SPLIT, NORM>))
#define CGC_PERSISTENT_KERNELS(FAMILY, NORM, N)                                                    \
  CGC_KERNEL_OF(FAMILY##_f16_128x##N##_persistent,                                                 \
                (productPersistent<__half, N, NORM, kClustersOf<N>>),                              \
                (bindPersistent<__half, N, NORM>))                                                 \
  CGC_KERNEL_OF(FAMILY##_bf16_128x##N##_persistent,                                                \
                (productPersistent<__nv_bfloat16, N, NORM, kClustersOf<N>>),                       \
                (bindPersistent<__nv_bfloat16, N, NORM>))
#define CGC_PRODUCT_TILE(...) CGC_PRODUCT_KERNELS(product, false, __VA_ARGS__)
#define CGC_PRODUCT_PERSISTENT(N) CGC_PERSISTENT_KERNELS(product, false, N)
#include "runtime/kernels/gemm/tiles.def"
#define CGC_PRODUCT_TILE(...) CGC_PRODUCT_KERNELS(product_norm, true, __VA_ARGS__)
#define CGC_PRODUCT_PERSISTENT(N) CGC_PERSISTENT_KERNELS(product_norm, true, N)
#include "runtime/kernels/gemm/norm_tiles.def"
#undef CGC_PRODUCT_KERNELS
#undef CGC_PERSISTENT_KERNELS

} // namespace cgc
