// Instantiates conv_bf16_* for every row of conv_tiles.def.
#include "runtime/kernels/gemm/gemm_instances.cuh"

namespace cgc {

#define CGC_GEMM_TILE(...) CGC_GEMM_INSTANCE(conv_bf16, __nv_bfloat16, Conv, __VA_ARGS__)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_PERSISTENT_INSTANCE(conv_bf16, __nv_bfloat16, Conv, M)
#include "runtime/kernels/gemm/conv_tiles.def"

} // namespace cgc
