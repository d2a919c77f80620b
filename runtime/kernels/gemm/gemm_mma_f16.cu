// Instantiates gemm_f16_*_mma and gemm_norm_f16_*_mma for every row of mma_tiles.def.
#include "runtime/kernels/gemm/gemm_mma.cuh"

namespace cgc {

#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_MMA_INSTANCE(gemm_f16, __half, Plain, N, M)                                                  \
  CGC_MMA_INSTANCE(gemm_norm_f16, __half, Norm, N, M)
#include "runtime/kernels/gemm/mma_tiles.def"

} // namespace cgc
