// One kernel for a tile: what the files gemm_f16.cu, gemm_bf16.cu, gemm_norm_f16.cu and
// gemm_norm_bf16.cu, which compile side by side, instantiate for each row of tiles.def and
// norm_tiles.def.
#pragma once

#include "runtime/kernels/gemm/bind_persistent.cuh"
#include "runtime/kernels/gemm/gemm.cuh"

#define CGC_GEMM_INSTANCE(FAMILY, T, FORM, N, M, SPLIT_K, CTAS)                                    \
  CGC_KERNEL_OF(FAMILY##_##N##x##M##_##SPLIT_K, (gemm<T, N, M, SPLIT_K, CTAS, GemmForm::FORM>),    \
                (bindGemm<T, N, M, SPLIT_K, GemmForm::FORM>))
#define CGC_GEMM_PERSISTENT_INSTANCE(FAMILY, T, FORM, M)                                           \
  CGC_KERNEL_OF(FAMILY##_128x##M##_persistent,                                                     \
                (gemmPersistent<T, M, GemmForm::FORM, kClustersOf<M>>),                            \
                (bindPersistent<T, M, GemmForm::FORM>))
