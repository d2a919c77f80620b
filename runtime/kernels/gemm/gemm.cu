// Instantiates gemm_* and gemm_norm_* for every tile, in f16 and bf16.
#include "runtime/kernels/gemm/bind_persistent.cuh"
#include "runtime/kernels/gemm/gemm.cuh"

namespace cgc {

/// The f16 and the bf16 kernel of a tile in one of the families.
#define CGC_GEMM_KERNELS(FAMILY, NORM, N, M, SPLIT_K, CTAS)                                        \
  CGC_KERNEL_OF(FAMILY##_f16_##N##x##M##_##SPLIT_K, (gemm<__half, N, M, SPLIT_K, CTAS, NORM>),     \
                (bindGemm<__half, N, M, SPLIT_K, NORM>))                                           \
  CGC_KERNEL_OF(FAMILY##_bf16_##N##x##M##_##SPLIT_K,                                               \
                (gemm<__nv_bfloat16, N, M, SPLIT_K, CTAS, NORM>),                                  \
                (bindGemm<__nv_bfloat16, N, M, SPLIT_K, NORM>))
#define CGC_PERSISTENT_KERNELS(FAMILY, NORM, M)                                                    \
  CGC_KERNEL_OF(FAMILY##_f16_128x##M##_persistent,                                                 \
                (gemmPersistent<__half, M, NORM, kClustersOf<M>>),                                 \
                (bindPersistent<__half, M, NORM>))                                                 \
  CGC_KERNEL_OF(FAMILY##_bf16_128x##M##_persistent,                                                \
                (gemmPersistent<__nv_bfloat16, M, NORM, kClustersOf<M>>),                          \
                (bindPersistent<__nv_bfloat16, M, NORM>))
#define CGC_GEMM_TILE(...) CGC_GEMM_KERNELS(gemm, false, __VA_ARGS__)
#define CGC_GEMM_PERSISTENT(M) CGC_PERSISTENT_KERNELS(gemm, false, M)
#include "runtime/kernels/gemm/tiles.def"
#define CGC_GEMM_TILE(...) CGC_GEMM_KERNELS(gemm_norm, true, __VA_ARGS__)
#define CGC_GEMM_PERSISTENT(M) CGC_PERSISTENT_KERNELS(gemm_norm, true, M)
#include "runtime/kernels/gemm/norm_tiles.def"
#undef CGC_GEMM_KERNELS
#undef CGC_PERSISTENT_KERNELS

} // namespace cgc
