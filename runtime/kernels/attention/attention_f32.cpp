// Checks launches of attention_f32_*.
#include "runtime/kernels/attention/attention_f32.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/kernel_id.h"

namespace cgc {

Result<Heads> checkAttentionF32(const LaunchView &launch, int64_t columns) {
  CGC_ASSIGN_OR_RETURN(const Heads heads, headsOf(launch, DType::F32, columns));
  if (launch.block[0] != kAttentionF32Threads || launch.block[1] != 1 || launch.block[2] != 1 ||
      launch.grid[0] != (heads.queries + kAttentionF32Queries - 1) / kAttentionF32Queries ||
      launch.grid[1] != heads.heads || launch.grid[2] != heads.batch ||
      launch.sharedBytes != attentionF32SharedBytes(columns))
    return refuseLaunch("grid, block or shared memory does not match the problem size");
  return heads;
}

#define CGC_ATTENTION_F32_KERNELS(ROW) ROW(32) ROW(48) ROW(64) ROW(80) ROW(96) ROW(112) ROW(128)

#define CGC_ATTENTION_F32_CHECK(COLUMNS)                                                           \
  CGC_KERNEL_CHECK(attention_f32_##COLUMNS, checkAttentionF32, COLUMNS)
CGC_ATTENTION_F32_KERNELS(CGC_ATTENTION_F32_CHECK)

const Kernel *attentionF32Kernel(int64_t columns) {
#define CGC_ATTENTION_F32_CASE(COLUMNS)                                                            \
  case COLUMNS:                                                                                    \
    return &kernelOf(KernelId::attention_f32_##COLUMNS);
  switch (columns) { CGC_ATTENTION_F32_KERNELS(CGC_ATTENTION_F32_CASE) }
  return nullptr;
}

} // namespace cgc
