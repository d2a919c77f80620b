// Checks launches of attention_*.
#include "runtime/kernels/attention/attention.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/kernel_id.h"

namespace cgc {

Result<AttentionLaunch> checkAttention(const LaunchView &launch, DType dtype, int64_t columns,
                                       bool useTma) {
  CGC_ASSIGN_OR_RETURN(const Heads heads, headsOf(launch, dtype, columns));
  const int64_t splits = launch.ints[kAttentionSplitsInt], warps = launch.block[0] / 32;
  if (splits < 1 || warps < 1 || warps > kAttentionMaxWarps || warps % splits != 0)
    return refuseLaunch("the warps of a CTA have to be a multiple of the splits");
  const int64_t rows = warps / splits * kAttentionQueries;
  if (launch.block[0] % 32 != 0 || launch.block[1] != 1 || launch.block[2] != 1 ||
      launch.grid[0] != (heads.queries + rows - 1) / rows || launch.grid[1] != heads.heads ||
      launch.grid[2] != heads.batch ||
      launch.sharedBytes != attentionSharedBytes(heads.keys, columns, warps, splits))
    return refuseLaunch("grid, block or shared memory does not match the problem size");
  AttentionLaunch checked{.heads = heads, .splits = splits, .k = {}, .v = {}};
  if (!useTma)
    return checked;
  if (heads.width != columns)
    return refuseLaunch("TMA needs a head width of exactly 64");
  const auto shape = [&](const HeadStrides &strides) {
    return headsMapShape({heads.batch, heads.heads, heads.keys},
                         {strides.batch, strides.head, strides.row}, kAttentionChunk);
  };
  checked.k = shape(heads.k);
  checked.v = shape(heads.v);
  CGC_TRY(checkTensorMap(checked.k, launch.reads[1].alignment));
  CGC_TRY(checkTensorMap(checked.v, launch.reads[2].alignment));
  return checked;
}

// The kernels of a dtype: ROW(suffix of the name, columns, useTma).
#define CGC_ATTENTION_KERNELS(ROW)                                                                 \
  ROW(32, 32, false)                                                                               \
  ROW(48, 48, false)                                                                               \
  ROW(64, 64, false)                                                                               \
  ROW(80, 80, false)                                                                               \
  ROW(96, 96, false)                                                                               \
  ROW(112, 112, false)                                                                             \
  ROW(128, 128, false)                                                                             \
  ROW(64_hopper, 64, true)

#define CGC_ATTENTION_CHECKS(NAME, ...)                                                            \
  CGC_KERNEL_CHECK(attention_f16_##NAME, checkAttention, DType::F16, __VA_ARGS__)                  \
  CGC_KERNEL_CHECK(attention_bf16_##NAME, checkAttention, DType::BF16, __VA_ARGS__)
CGC_ATTENTION_KERNELS(CGC_ATTENTION_CHECKS)

const Kernel *attentionKernel(DType dtype, int64_t columns, bool useTma) {
  struct Row {
    KernelId f16, bf16;
    int64_t columns;
    bool useTma;
  };
#define CGC_ATTENTION_ROW(NAME, ...)                                                               \
  {KernelId::attention_f16_##NAME, KernelId::attention_bf16_##NAME, __VA_ARGS__},
  static constexpr Row kRows[] = {CGC_ATTENTION_KERNELS(CGC_ATTENTION_ROW)};
  if (dtype != DType::F16 && dtype != DType::BF16)
    return nullptr;
  for (const Row &row : kRows)
    if (row.columns == columns && row.useTma == useTma)
      return &kernelOf(dtype == DType::F16 ? row.f16 : row.bf16);
  return nullptr;
}

} // namespace cgc
