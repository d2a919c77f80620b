// Instantiates gemm_bf16_* for every row of tiles.def.
#include "runtime/kernels/gemm/gemm_instances.cuh"

namespace cgc {

#define CGC_GEMM_TILE(...) CGC_GEMM_INSTANCE(gemm_bf16, __nv_bfloat16, Plain, __VA_ARGS__)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_PERSISTENT_INSTANCE(gemm_bf16, __nv_bfloat16, Plain, M)
#include "runtime/kernels/gemm/tiles.def"

} // namespace cgc
