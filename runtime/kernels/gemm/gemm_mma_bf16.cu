// Instantiates gemm_bf16_*_mma and gemm_norm_bf16_*_mma for every row of mma_tiles.def.
#include "runtime/kernels/gemm/gemm_mma.cuh"

namespace cgc {

#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_MMA_INSTANCE(gemm_bf16, __nv_bfloat16, Plain, N, M)                                          \
  CGC_MMA_INSTANCE(gemm_norm_bf16, __nv_bfloat16, Norm, N, M)
#include "runtime/kernels/gemm/mma_tiles.def"

} // namespace cgc
