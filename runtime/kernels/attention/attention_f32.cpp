// Checks launches of attention_f32_*.
#include "runtime/kernels/attention/attention_f32.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<Heads> checkAttentionF32(const LaunchView &launch, int64_t columns) {
  CGC_ASSIGN_OR_RETURN(const Heads heads, headsOf(launch, DType::F32, columns));
  if (launch.block[0] != kAttentionF32Threads || launch.block[1] != 1 || launch.block[2] != 1 ||
      launch.grid[0] != (heads.queries + kAttentionF32Queries - 1) / kAttentionF32Queries ||
      launch.grid[1] != heads.heads || launch.grid[2] != heads.batch ||
      launch.sharedBytes != attentionF32SharedBytes(columns))
    return refuseLaunch("the launch is not that of the sizes");
  return heads;
}

CGC_KERNEL_CHECK(attention_f32_32, checkAttentionF32, 32)
CGC_KERNEL_CHECK(attention_f32_48, checkAttentionF32, 48)
CGC_KERNEL_CHECK(attention_f32_64, checkAttentionF32, 64)
CGC_KERNEL_CHECK(attention_f32_80, checkAttentionF32, 80)
CGC_KERNEL_CHECK(attention_f32_96, checkAttentionF32, 96)
CGC_KERNEL_CHECK(attention_f32_112, checkAttentionF32, 112)
CGC_KERNEL_CHECK(attention_f32_128, checkAttentionF32, 128)

} // namespace cgc
