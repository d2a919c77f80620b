// Checks launches of attention_resident_kv_* and attention_split_kv_*.
#include "runtime/kernels/attention/attention_resident_kv.h"

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// Whether the first four ints, the sizes, are in range.
bool hasSizes(const LaunchView &launch) {
  const int64_t batch = launch.ints[0], heads = launch.ints[1], queries = launch.ints[2],
                keys = launch.ints[3];
  return batch >= 1 && heads >= 1 && queries >= 1 && keys >= 1 && batch <= kAttentionMostOfGrid &&
         heads <= kAttentionMostOfGrid && queries <= 1 << 20;
}

Status refuseKeys() {
  return refuseLaunch("batch, heads, queries and keys have to be positive, and the keys those of "
                      "the kernel");
}

/// Checks the tensors of a launch of either kernel, whose sizes are in range. TMA loads queries in
/// boxes of `queryBox` rows, keys and values in boxes of `keyBox` rows.
Result<ResidentKvLaunch> checkTensors(const LaunchView &launch, DType dtype,
                                      const ResidentKvShape &shape, bool causal, int64_t queryBox,
                                      int64_t keyBox) {
  const int64_t batch = launch.ints[0], heads = launch.ints[1], queries = launch.ints[2],
                keys = launch.ints[3];
  if (!(launch.floats[0] > 0))
    return refuseLaunch("scale has to be positive");
  const auto q = headStridesOf(launch.reads[0], dtype, batch, heads, queries, 64);
  const auto k = headStridesOf(launch.reads[1], dtype, batch, heads, keys, 64);
  const auto v = headStridesOf(launch.reads[2], dtype, batch, heads, keys, 64);
  const auto out = headStridesOf(launch.writes[0], dtype, batch, heads, queries, 64);
  if (!q || !k || !v || !out)
    return refuseLaunch("q, k, v and out [batch, heads, rows, 64] need dense columns and rows at "
                        "multiples of 16 bytes");
  const auto mapShape = [&](const HeadStrides &strides, int64_t rows, int64_t box) {
    return headsMapShape({batch, heads, rows}, {strides.batch, strides.head, strides.row},
                         uint32_t(box));
  };
  const ResidentKvLaunch checked{.batch = batch,
                                 .heads = heads,
                                 .queries = queries,
                                 .keys = keys,
                                 .causal = causal,
                                 .scale = launch.floats[0],
                                 .shape = shape,
                                 .qStrides = *q,
                                 .outStrides = *out,
                                 .q = mapShape(*q, queries, queryBox),
                                 .k = mapShape(*k, keys, keyBox),
                                 .v = mapShape(*v, keys, keyBox),
                                 .out = mapShape(*out, queries, kResidentKvWarpQueries)};
  CGC_TRY(checkTensorMap(checked.q, launch.reads[0].alignment));
  CGC_TRY(checkTensorMap(checked.k, launch.reads[1].alignment));
  CGC_TRY(checkTensorMap(checked.v, launch.reads[2].alignment));
  return checked;
}

} // namespace

Result<ResidentKvLaunch> checkResidentKv(const LaunchView &launch, DType dtype, int64_t capacity) {
  const int64_t causal = launch.ints[4];
  const ResidentKvShape shape{launch.ints[5], launch.block[0] / 128, launch.ints[6]};
  if (!hasSizes(launch) || causal < 0 || causal > 1 || residentKvKeys(launch.ints[3]) != capacity)
    return refuseKeys();
  if (shape.tiles < 1 || shape.tiles > kResidentKvMaxTiles || shape.groups < 1 ||
      shape.groups > kResidentKvMaxGroups || shape.stages < 1 || shape.stages > 2)
    return refuseLaunch("tiles, warpgroups or stages are out of range");
  const int64_t items = shape.items(launch.ints[0] * launch.ints[1], launch.ints[2]);
  if (launch.grid[0] < 1 || launch.grid[0] > items || items > kResidentKvMaxItems ||
      !hasShape(launch, launch.grid[0], uint32_t(shape.groups * 128),
                shape.sharedBytes(launch.ints[2], launch.ints[3])))
    return refuseLaunch("the launch is not that of the sizes");
  CGC_ASSIGN_OR_RETURN(const ResidentKvLaunch checked,
                       checkTensors(launch, dtype, shape, causal == 1,
                                    shape.tiles * kResidentKvQueries,
                                    capacity / residentKvBoxes(capacity)));
  CGC_TRY(checkTensorMap(checked.out, launch.writes[0].alignment));
  return checked;
}

Result<ResidentKvLaunch> checkSplitKv(const LaunchView &launch, DType dtype) {
  if (!hasSizes(launch) || !fitsSplitKv(launch.ints[3]))
    return refuseKeys();
  const ResidentKvShape shape{1, 2, 1};
  const int64_t items = shape.items(launch.ints[0] * launch.ints[1], launch.ints[2]);
  if (items > kResidentKvMaxItems || !hasShape(launch, items, 256, kSplitKvSharedBytes))
    return refuseLaunch("the launch is not that of the sizes");
  return checkTensors(launch, dtype, shape, /*causal=*/false, kResidentKvQueries, kSplitKvKeys);
}

#define CGC_RESIDENT_KV_CHECKS(KEYS)                                                               \
  CGC_KERNEL_CHECK(attention_resident_kv_f16_##KEYS, checkResidentKv, DType::F16, KEYS)            \
  CGC_KERNEL_CHECK(attention_resident_kv_bf16_##KEYS, checkResidentKv, DType::BF16, KEYS)
CGC_RESIDENT_KV_CHECKS(64)
CGC_RESIDENT_KV_CHECKS(80)
CGC_RESIDENT_KV_CHECKS(128)
CGC_RESIDENT_KV_CHECKS(208)
CGC_RESIDENT_KV_CHECKS(272)
#undef CGC_RESIDENT_KV_CHECKS
CGC_KERNEL_CHECK(attention_split_kv_f16, checkSplitKv, DType::F16)
CGC_KERNEL_CHECK(attention_split_kv_bf16, checkSplitKv, DType::BF16)

} // namespace cgc
