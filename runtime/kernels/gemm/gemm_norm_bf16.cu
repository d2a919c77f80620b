// Instantiates gemm_norm_bf16_* for every row of norm_tiles.def.
#include "runtime/kernels/gemm/gemm_instances.cuh"

namespace cgc {

#define CGC_GEMM_TILE(...) CGC_GEMM_INSTANCE(gemm_norm_bf16, __nv_bfloat16, Norm, __VA_ARGS__)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_PERSISTENT_INSTANCE(gemm_norm_bf16, __nv_bfloat16, Norm, M)
#include "runtime/kernels/gemm/norm_tiles.def"

} // namespace cgc
