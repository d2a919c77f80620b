// Checks launches of attention_resident_kv_* and attention_split_kv_*.
#include "runtime/kernels/attention/attention_resident_kv.h"

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/kernel_id.h"

namespace cgc {
namespace {

/// Whether the sizes are in range.
bool hasSizes(const AttentionNumbers &n) {
  return n.batch >= 1 && n.heads >= 1 && n.queries >= 1 && n.keys >= 1 && n.batch <= kMaxGridYZ &&
         n.heads <= kMaxGridYZ && n.queries <= 1 << 20;
}

Status refuseKeys() {
  return refuseLaunch("batch, heads, queries and keys have to be positive, and the keys those of "
                      "the kernel");
}

/// Checks the tensors of a launch of either kernel, whose sizes are in range. TMA loads queries in
/// boxes of `queryBox` rows, keys and values in boxes of `keyBox` rows.
Result<ResidentKvLaunch> checkTensors(const LaunchView &launch, DType dtype,
                                      const ResidentKvShape &shape, int64_t queryBox,
                                      int64_t keyBox) {
  const auto [batch, heads, queries, keys, causal] = AttentionNumbers::of(launch.ints);
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
                                 .causal = causal == 1,
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
  const auto n = AttentionNumbers::of(launch.ints);
  const ResidentKvShape shape{launch.ints[kResidentKvTilesInt], launch.block[0] / 128,
                              launch.ints[kResidentKvStagesInt]};
  if (!hasSizes(n) || n.causal < 0 || n.causal > 1 || residentKvKeys(n.keys) != capacity)
    return refuseKeys();
  if (shape.tiles < 1 || shape.tiles > kResidentKvMaxTiles || shape.groups < 1 ||
      shape.groups > kResidentKvMaxGroups || shape.stages < 1 || shape.stages > 2)
    return refuseLaunch("tiles, warpgroups or stages are out of range");
  const int64_t items = shape.items(n.batch * n.heads, n.queries);
  if (launch.grid[0] < 1 || launch.grid[0] > items || items > kResidentKvMaxItems ||
      !hasShape(launch, launch.grid[0], uint32_t(shape.groups * 128),
                shape.sharedBytes(n.queries, n.keys)))
    return refuseLaunch("grid, block or shared memory does not match the problem size");
  CGC_ASSIGN_OR_RETURN(const ResidentKvLaunch checked,
                       checkTensors(launch, dtype, shape, shape.tiles * kResidentKvQueries,
                                    capacity / residentKvBoxes(capacity)));
  CGC_TRY(checkTensorMap(checked.out, launch.writes[0].alignment));
  return checked;
}

Result<ResidentKvLaunch> checkSplitKv(const LaunchView &launch, DType dtype) {
  const auto n = AttentionNumbers::of(launch.ints);
  if (!hasSizes(n) || !fitsSplitKv(n.keys))
    return refuseKeys();
  const int64_t items = kSplitKvShape.items(n.batch * n.heads, n.queries);
  if (items > kResidentKvMaxItems || !hasShape(launch, items, 256, kSplitKvSharedBytes))
    return refuseLaunch("grid, block or shared memory does not match the problem size");
  return checkTensors(launch, dtype, kSplitKvShape, kResidentKvQueries, kSplitKvKeys);
}

// ROW(key capacity) for each of kResidentKvKeys.
#define CGC_RESIDENT_KV_KERNELS(ROW) ROW(64) ROW(80) ROW(128) ROW(208) ROW(272)

#define CGC_RESIDENT_KV_CHECKS(KEYS)                                                               \
  CGC_KERNEL_CHECK(attention_resident_kv_f16_##KEYS, checkResidentKv, DType::F16, KEYS)            \
  CGC_KERNEL_CHECK(attention_resident_kv_bf16_##KEYS, checkResidentKv, DType::BF16, KEYS)
CGC_RESIDENT_KV_KERNELS(CGC_RESIDENT_KV_CHECKS)
CGC_KERNEL_CHECK(attention_split_kv_f16, checkSplitKv, DType::F16)
CGC_KERNEL_CHECK(attention_split_kv_bf16, checkSplitKv, DType::BF16)

const Kernel *residentKvKernel(DType dtype, int64_t keys) {
  if (dtype != DType::F16 && dtype != DType::BF16)
    return nullptr;
#define CGC_RESIDENT_KV_CASE(KEYS)                                                                 \
  case KEYS:                                                                                       \
    return &kernelOf(dtype == DType::F16 ? KernelId::attention_resident_kv_f16_##KEYS              \
                                         : KernelId::attention_resident_kv_bf16_##KEYS);
  switch (residentKvKeys(keys)) {
    CGC_RESIDENT_KV_KERNELS(CGC_RESIDENT_KV_CASE)
  default:
    return nullptr;
  }
}

const Kernel *splitKvKernel(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return &kernelOf(KernelId::attention_split_kv_f16);
  case DType::BF16:
    return &kernelOf(KernelId::attention_split_kv_bf16);
  default:
    return nullptr;
  }
}

} // namespace cgc
