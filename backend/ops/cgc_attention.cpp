// cgc.attention: one of our own kernels on cuda, else LibTorch's attention, its result
// seen head by head.
#include "backend/kernels.h"
#include "backend/lowering.h"

#include "runtime/kernels/attention.h"
#include "runtime/kernels/attention_f32.h"
#include "runtime/kernels/attention_whole.h"
#include "runtime/kernels/kernel_table.h"

namespace cgc::backend {
namespace {

/// Whether rows can be read in 16-byte vectors.
bool hasVectorRows(const Place &place) {
  if (place.offset % 16 != 0 || place.strides[3] != 1)
    return false;
  for (int dim = 0; dim < 3; ++dim)
    if (place.sizes[dim] > 1 && place.strides[dim] % 8 != 0)
      return false;
  return true;
}

struct Attention {
  Place query, key, value, result; ///< [batch, heads, rows, width].
  std::optional<Place> mask;       ///< Broadcast to [batch, heads, queries, keys].
};

/// Whether tensor copies can fetch these heads: no dimension is broadcast.
bool hasTensorMap(const Place &place) {
  if (place.sizes[3] != 64)
    return false;
  for (int dim = 0; dim < 3; ++dim)
    if (place.sizes[dim] > 1 && place.strides[dim] <= 0)
      return false;
  return true;
}

/// The kernel that takes these tensors; null if none does.
const Kernel *kernelFor(const Attention &a, Arch arch) {
  const DType dtype = a.query.dtype;
  if ((dtype != DType::F16 && dtype != DType::BF16 && dtype != DType::F32) ||
      !hasAttention(a.query.sizes[3]) || a.value.sizes[3] != a.query.sizes[3] ||
      a.query.type().numElements() == 0 || a.key.type().numElements() == 0 ||
      a.query.sizes[0] > kAttentionMostOfGrid || a.query.sizes[1] > kAttentionMostOfGrid)
    return nullptr;
  for (const Place *place : {&a.query, &a.key, &a.value, &a.result})
    if (place->sizes[0] != a.query.sizes[0] || place->sizes[1] != a.query.sizes[1] ||
        !hasVectorRows(*place))
      return nullptr;
  if (a.mask && (a.mask->dtype != dtype || (a.mask->strides[3] != 1 && a.mask->sizes[3] > 1)))
    return nullptr;
  const bool copies =
      dtype != DType::F32 && arch == Arch::Sm90a && hasTensorMap(a.key) && hasTensorMap(a.value);
  return findKernel("attention_" + std::string(dtypeName(dtype)) + "_" +
                    std::to_string(a.query.sizes[3]) + (copies ? "_hopper" : ""));
}

/// The mask as the kernel takes it: all four dimensions, broadcast by strides of 0.
std::optional<Place> broadcastMask(Place mask, const Place &query, int64_t keys) {
  const int64_t sizes[] = {query.sizes[0], query.sizes[1], query.sizes[2], keys};
  while (mask.sizes.size() < 4) {
    mask.sizes.insert(mask.sizes.begin(), 1);
    mask.strides.insert(mask.strides.begin(), 0);
  }
  for (int dim = 0; dim < 4; ++dim)
    if (mask.sizes[dim] != sizes[dim]) {
      if (dim == 3)
        return std::nullopt;
      mask.sizes[dim] = sizes[dim];
      mask.strides[dim] = 0;
    }
  return mask;
}

/// How a block is made up: `warps` in all, of which each `splits` share 16 queries.
struct Shape {
  int64_t warps, splits;
};

/// While SMs are idle, warps that split keys shorten the work, and small blocks spread it; else a
/// block takes as many queries as there are, so that keys are fetched once. As measured on an H200
/// (docs/performance.md).
Shape shapeFor(int64_t heads, int64_t queries, int64_t keys, int64_t sms) {
  const int64_t rows = (queries + kAttentionQueries - 1) / kAttentionQueries;
  if (heads * rows <= 3 * sms) {
    const int64_t splits = keys > kAttentionChunk ? 2 : 1;
    return {std::min<int64_t>(2, rows) * splits, splits};
  }
  // The fewest slices of the queries; then warps evenly over them.
  const int64_t slices = (rows + kAttentionMaxWarps - 1) / kAttentionMaxWarps;
  return {(rows + slices - 1) / slices, 1};
}

/// Adds the record of attention_whole or attention_halves; false, without one, if it does not take
/// these tensors or is not the faster one.
bool lowerToWhole(const Attention &a, bool causal, double scale, BucketBuilder &builder) {
  const int64_t batch = a.query.sizes[0], heads = a.query.sizes[1], queries = a.query.sizes[2],
                keys = a.key.sizes[2], all = (queries + kWholeQueries - 1) / kWholeQueries;
  if (builder.arch() != Arch::Sm90a || a.mask)
    return false;
  for (const Place *place : {&a.query, &a.key, &a.value})
    if (!hasTensorMap(*place))
      return false;
  // As measured on an H200 (docs/performance.md): a tile for each block while SMs are idle; else
  // whole heads, so that keys are fetched once. Many heads of up to 64 keys are better off in
  // chunks.
  const int64_t sms = builder.multiprocessors();
  const bool idle = batch * heads * all <= sms;
  if (idle && !causal && fitsHalves(keys)) {
    KernelLaunch launch = launchOf(kernelNamed("attention_halves", a.query.dtype));
    launch.grid[0] = uint32_t(batch * heads * all);
    launch.block[0] = 256;
    launch.sharedBytes = kHalvesSharedBytes;
    launch.reads = {builder.tensor(a.query), builder.tensor(a.key), builder.tensor(a.value)};
    launch.writes = {builder.tensor(a.result)};
    launch.ints = {batch, heads, queries, keys};
    launch.floats = {scale};
    builder.record({std::move(launch)});
    return true;
  }
  if (wholeKeys(keys) == 0 || (!idle && keys <= kWholeQueries))
    return false;
  const int64_t tiles = wholeTiles(queries);
  // Two blocks of up to two warpgroups and few keys share an SM: registers and memory are enough.
  // One fetches while the other computes.
  const bool shares = !idle && keys <= 128 && tiles <= 2;
  const WholeShape shape =
      idle ? WholeShape{1, 1, 2}
           : WholeShape{tiles, std::min(tiles, kWholeMaxGroups), shares ? 1 : 2};
  const int64_t items = shape.items(batch * heads, queries);
  KernelLaunch launch = launchOf(kernelNamed("attention_whole", a.query.dtype) + "_" +
                                 std::to_string(wholeKeys(keys)));
  launch.grid[0] = uint32_t(shares ? items : std::min(items, sms));
  launch.block[0] = uint32_t(shape.groups * 128);
  launch.sharedBytes = shape.sharedBytes(queries, keys);
  launch.reads = {builder.tensor(a.query), builder.tensor(a.key), builder.tensor(a.value)};
  launch.writes = {builder.tensor(a.result)};
  launch.ints = {batch, heads, queries, keys, causal, shape.tiles, shape.stages};
  launch.floats = {scale};
  builder.record({std::move(launch)});
  return true;
}

/// Adds the record of attention_f32, which takes what kernelFor has found fit.
void lowerToF32(const Attention &a, const Kernel &kernel, bool causal, double scale,
                BucketBuilder &builder) {
  const int64_t batch = a.query.sizes[0], heads = a.query.sizes[1], queries = a.query.sizes[2],
                keys = a.key.sizes[2];
  KernelLaunch launch = launchOf(kernel.name);
  launch.grid[0] = uint32_t((queries + kAttentionF32Queries - 1) / kAttentionF32Queries);
  launch.grid[1] = uint32_t(heads);
  launch.grid[2] = uint32_t(batch);
  launch.block[0] = kAttentionF32Threads;
  launch.sharedBytes = attentionF32SharedBytes(a.query.sizes[3]);
  launch.reads = {builder.tensor(a.query), builder.tensor(a.key), builder.tensor(a.value),
                  a.mask ? builder.tensor(*a.mask) : kNoTensor};
  launch.writes = {builder.tensor(a.result)};
  launch.ints = {batch, heads, queries, keys, causal};
  launch.floats = {scale};
  builder.record({std::move(launch)});
}

} // namespace

Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  assert(result.type().isContiguous());
  Attention a{builder.place(node.arg("query").value()), builder.place(node.arg("key").value()),
              builder.place(node.arg("value").value()), result, std::nullopt};
  a.result.sizes = a.query.sizes;
  a.result.strides = {result.strides[0], a.query.sizes[3], result.strides[1], 1};
  const int64_t batch = a.query.sizes[0], heads = a.query.sizes[1], queries = a.query.sizes[2],
                keys = a.key.sizes[2];
  bool masked = !node.arg("attn_mask").isNone();
  if (masked)
    a.mask = broadcastMask(builder.place(node.arg("attn_mask").value()), a.query, keys);
  const double scale = *node.arg("scale").asNumber();
  const bool fits =
      builder.target() == DeviceKind::Cuda && masked == a.mask.has_value() && scale > 0;
  const Kernel *kernel = fits ? kernelFor(a, builder.arch()) : nullptr;
  if (!kernel) {
    builder.callThenCopy("aten::scaled_dot_product_attention", "",
                         {builder.arg(node.arg("query")), builder.arg(node.arg("key")),
                          builder.arg(node.arg("value")), builder.arg(node.arg("attn_mask")), 0.0,
                          builder.arg(node.arg("is_causal")), builder.arg(node.arg("scale")),
                          false},
                         {a.result});
    return Status::ok();
  }
  const bool causal = node.arg("is_causal").as<bool>();
  if (a.query.dtype == DType::F32) {
    lowerToF32(a, *kernel, causal, scale, builder);
    return Status::ok();
  }
  if (lowerToWhole(a, causal, scale, builder))
    return Status::ok();
  const Shape shape = shapeFor(batch * heads, queries, keys, builder.multiprocessors());
  const int64_t rows = shape.warps / shape.splits * kAttentionQueries;
  KernelLaunch launch = launchOf(kernel->name);
  launch.grid[0] = uint32_t((queries + rows - 1) / rows);
  launch.grid[1] = uint32_t(heads);
  launch.grid[2] = uint32_t(batch);
  launch.block[0] = uint32_t(shape.warps * 32);
  launch.sharedBytes = attentionSharedBytes(keys, a.query.sizes[3], shape.warps, shape.splits);
  launch.reads = {builder.tensor(a.query), builder.tensor(a.key), builder.tensor(a.value),
                  a.mask ? builder.tensor(*a.mask) : kNoTensor};
  launch.writes = {builder.tensor(a.result)};
  launch.ints = {batch, heads, queries, keys, causal, shape.splits};
  launch.floats = {scale};
  builder.record({std::move(launch)});
  return Status::ok();
}

} // namespace cgc::backend
