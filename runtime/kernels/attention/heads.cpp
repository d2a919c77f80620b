// Checks the operands that attention kernels have in common.
#include "runtime/kernels/attention/heads.h"

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/kernel_checks.h"

#include <algorithm>

namespace cgc {

std::optional<HeadStrides> headStridesOf(const OperandView &operand, DType dtype, int64_t batch,
                                         int64_t heads, int64_t rows, int64_t columns,
                                         int64_t vector) {
  const int64_t sizes[] = {batch, heads, rows, columns};
  if (!operand.isPresent() || operand.dtype != dtype || !std::ranges::equal(operand.sizes, sizes) ||
      !isAligned(operand, vector * dtypeSize(dtype)))
    return std::nullopt;
  const std::span<const int64_t> strides = operand.strides;
  if (strides.empty())
    return HeadStrides{heads * rows * columns, rows * columns, columns};
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > 1 && strides[i] % vector != 0)
      return std::nullopt;
  if (columns > 1 && strides[3] != 1)
    return std::nullopt;
  return HeadStrides{strides[0], strides[1], strides[2]};
}

Result<Heads> headsOf(const LaunchView &launch, DType dtype, int64_t columns) {
  const auto [batch, heads, queries, keys, causal] = AttentionNumbers::of(launch.ints);
  const int64_t most = 1 << 24;
  if (batch < 1 || heads < 1 || queries < 1 || keys < 1 || batch > kMaxGridYZ ||
      heads > kMaxGridYZ || queries > most || keys > most || causal < 0 || causal > 1)
    return refuseLaunch("batch, heads, queries and keys have to be positive and not too many");
  if (!(launch.floats[0] > 0))
    return refuseLaunch("scale has to be positive");
  const OperandView &query = launch.reads[0];
  const int64_t width = query.sizes.empty() ? 0 : query.sizes.back();
  const auto strides = [&](const OperandView &operand, int64_t rows) {
    return headStridesOf(operand, dtype, batch, heads, rows, width, 16 / dtypeSize(dtype));
  };
  const auto q = strides(query, queries), k = strides(launch.reads[1], keys),
             v = strides(launch.reads[2], keys), out = strides(launch.writes[0], queries);
  const OperandView &added = launch.reads[3];
  const int64_t maskBatches = !added.sizes.empty() && added.sizes[0] > 0 ? added.sizes[0] : 1;
  const auto maskStrides = [&](int64_t vector) {
    return headStridesOf(added, dtype, maskBatches, heads, queries, keys, vector);
  };
  const auto mask = added.isPresent() ? maskStrides(1) : std::optional(HeadStrides{});
  if (attentionColumns(width) != columns || !q || !k || !v || !out || !mask ||
      batch % maskBatches != 0)
    return refuseLaunch("q, k, v and out [batch, heads, rows, width] and mask [mask batches, "
                        "heads, queries, keys] need a width that the kernel is for, dense columns, "
                        "rows at multiples of 16 bytes, and a batch that is a multiple of the "
                        "mask's");
  return Heads{.batch = batch,
               .heads = heads,
               .queries = queries,
               .keys = keys,
               .width = width,
               .causal = causal == 1,
               .scale = launch.floats[0],
               .q = *q,
               .k = *k,
               .v = *v,
               .mask = *mask,
               .out = *out,
               .maskBatches = maskBatches,
               .maskHasPairs = added.isPresent() && maskStrides(2)};
}

} // namespace cgc
