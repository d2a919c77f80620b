// Checks launches of attention_backward_*.
#include "runtime/kernels/attention/attention_backward.h"

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/kernel_id.h"

namespace cgc {

Result<AttentionBackwardLaunch> checkAttentionBackward(const LaunchView &launch, DType dtype,
                                                       int64_t width) {
  const auto [batch, heads, queries, keys, causal] = AttentionNumbers::of(launch.ints);
  // Longer heads do not fit into the shared memory of any GPU.
  constexpr int64_t kMost = 4096;
  if (batch < 1 || heads < 1 || queries < 1 || keys < 1 || batch > kMaxGridYZ ||
      heads > kMaxGridYZ || queries > kMost || keys > kMost || causal < 0 || causal > 1)
    return refuseLaunch("batch, heads, queries and keys have to be positive and not too many");
  if (!(launch.floats[0] > 0))
    return refuseLaunch("scale has to be positive");
  if (launch.grid[0] != heads || launch.grid[1] != batch || launch.grid[2] != 1 ||
      launch.block[0] != attentionBackwardWarps(queries, keys) * 32 || launch.block[1] != 1 ||
      launch.block[2] != 1 ||
      launch.sharedBytes != attentionBackwardSharedBytes(queries, keys, width))
    return refuseLaunch("grid, block or shared memory does not match the problem size");
  const auto strides = [&](const OperandView &operand, int64_t rows) {
    return headStridesOf(operand, dtype, batch, heads, rows, width);
  };
  const auto dO = strides(launch.reads[0], queries), q = strides(launch.reads[1], queries),
             k = strides(launch.reads[2], keys), v = strides(launch.reads[3], keys),
             dQ = strides(launch.writes[0], queries), dK = strides(launch.writes[1], keys),
             dV = strides(launch.writes[2], keys);
  if (!dO || !q || !k || !v || !dQ || !dK || !dV)
    return refuseLaunch("all tensors [batch, heads, rows, width] need dense columns and rows at "
                        "multiples of 16 bytes");
  return AttentionBackwardLaunch{.queries = queries,
                                 .keys = keys,
                                 .causal = causal == 1,
                                 .scale = launch.floats[0],
                                 .dO = *dO,
                                 .q = *q,
                                 .k = *k,
                                 .v = *v,
                                 .dQ = *dQ,
                                 .dK = *dK,
                                 .dV = *dV};
}

#define CGC_ATTENTION_BACKWARD_CHECKS(WIDTH)                                                       \
  CGC_KERNEL_CHECK(attention_backward_f16_##WIDTH, checkAttentionBackward, DType::F16, WIDTH)      \
  CGC_KERNEL_CHECK(attention_backward_bf16_##WIDTH, checkAttentionBackward, DType::BF16, WIDTH)
CGC_ATTENTION_BACKWARD_CHECKS(64)
CGC_ATTENTION_BACKWARD_CHECKS(80)

const Kernel *attentionBackwardKernel(DType dtype, int64_t width) {
  if (dtype != DType::F16 && dtype != DType::BF16)
    return nullptr;
  const bool isHalf = dtype == DType::F16;
  if (width == 64)
    return &kernelOf(isHalf ? KernelId::attention_backward_f16_64
                            : KernelId::attention_backward_bf16_64);
  if (width == 80)
    return &kernelOf(isHalf ? KernelId::attention_backward_f16_80
                            : KernelId::attention_backward_bf16_80);
  return nullptr;
}

} // namespace cgc
