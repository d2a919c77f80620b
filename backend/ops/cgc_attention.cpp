// cgc.attention: one of cgc's own kernels on cuda; else LibTorch's attention, which writes to a
// view of the result with one slice per head.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/base/check.h"

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_f32.h"
#include "runtime/kernels/attention/attention_resident_kv.h"

namespace cgc::backend {
namespace {

struct Attention {
  Place query, key, value, result; ///< [batch, heads, rows, width].
  std::optional<Place> mask;       ///< Broadcast to [batch, heads, queries, keys].
  bool causal;
  double scale;

  int64_t batch() const { return query.sizes[0]; }
  int64_t heads() const { return query.sizes[1]; }
  int64_t queries() const { return query.sizes[2]; }
  int64_t keys() const { return key.sizes[2]; }
};

/// The mask in the form that the kernels take: four dimensions, broadcast by strides of 0. Nothing
/// if the keys would be broadcast.
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

/// The shape of a block: `warps` in all, in groups of `splits`. Each group computes 16 queries and
/// splits the keys.
struct Shape {
  int64_t warps, splits;
};

/// The fastest shape as measured on an H200 (docs/log/2026-11-21-attention-kernels.md). While SMs
/// are idle, splitting the keys between warps shortens the work and small blocks spread it.
/// Otherwise a block takes as many queries as there are, so that keys are fetched once.
Shape shapeFor(int64_t heads, int64_t queries, int64_t keys, int64_t sms) {
  const int64_t rows = (queries + kAttentionQueries - 1) / kAttentionQueries;
  if (heads * rows <= 3 * sms) {
    const int64_t splits = keys > kAttentionChunk ? 2 : 1;
    return {std::min<int64_t>(2, rows) * splits, splits};
  }
  // As few slices of the queries as possible, with the warps spread evenly over them.
  const int64_t slices = (rows + kAttentionMaxWarps - 1) / kAttentionMaxWarps;
  return {(rows + slices - 1) / slices, 1};
}

/// Adds the record of attention_split_kv, if it takes these tensors.
bool lowerToSplitKv(const Attention &a, BucketBuilder &builder) {
  return !a.mask && !a.causal &&
         launch({.kernel = kernelNamed("attention_split_kv", a.query.dtype),
                 .blocks =
                     uint64_t(ResidentKvShape{1, 2, 1}.items(a.batch() * a.heads(), a.queries())),
                 .threads = 256,
                 .reads = {a.query, a.key, a.value},
                 .writes = {a.result},
                 .ints = {a.batch(), a.heads(), a.queries(), a.keys()},
                 .floats = {a.scale},
                 .sharedBytes = kSplitKvSharedBytes},
                builder);
}

/// Adds the record of attention_resident_kv, if it takes these tensors, with one block per item and
/// at most `blocks`.
bool lowerToResidentKv(const Attention &a, const ResidentKvShape &shape, int64_t blocks,
                       BucketBuilder &builder) {
  const int64_t items = shape.items(a.batch() * a.heads(), a.queries());
  return !a.mask && launch({.kernel = kernelNamed("attention_resident_kv", a.query.dtype) + "_" +
                                      std::to_string(residentKvKeys(a.keys())),
                            .blocks = uint64_t(std::min(items, blocks)),
                            .threads = uint32_t(shape.groups * 128),
                            .reads = {a.query, a.key, a.value},
                            .writes = {a.result},
                            .ints = {a.batch(), a.heads(), a.queries(), a.keys(), a.causal,
                                     shape.tiles, shape.stages},
                            .floats = {a.scale},
                            .sharedBytes = shape.sharedBytes(a.queries(), a.keys())},
                           builder);
}

/// Adds the record of a kernel that keeps all keys and values of a head in shared memory. Returns
/// false and adds nothing if no such kernel takes these tensors or the chunked kernel is faster.
/// The choice is as measured on an H200 (docs/log/2026-11-22-attention-whole.md): one tile per
/// block while SMs are idle; otherwise each block takes whole heads, so that keys are fetched once.
/// For many heads of up to 64 keys the chunked kernel is faster.
bool lowerWithKvInShared(const Attention &a, BucketBuilder &builder) {
  const int64_t sms = builder.multiprocessors();
  const ResidentKvShape tile{1, 1, 1};
  const int64_t tilesOfAll =
      a.batch() * a.heads() * ((a.queries() + kResidentKvQueries - 1) / kResidentKvQueries);
  if (tilesOfAll <= sms)
    return lowerToSplitKv(a, builder) || lowerToResidentKv(a, tile, tilesOfAll, builder);
  if (a.keys() <= kResidentKvQueries)
    return false;
  const int64_t tiles = residentKvTiles(a.queries());
  // Two blocks of up to two warpgroups and few keys fit on an SM at once: registers and shared
  // memory suffice. One fetches while the other computes.
  if (a.keys() <= 128 && tiles <= 2)
    return lowerToResidentKv(a, {tiles, tiles, 1}, INT32_MAX, builder);
  return lowerToResidentKv(a, {tiles, std::min(tiles, kResidentKvMaxGroups), 2}, sms, builder);
}

/// Adds the record of the chunked kernel `attention`, if it takes these tensors. Prefers the
/// variant that loads with TMA.
bool lowerToChunkedKv(const Attention &a, BucketBuilder &builder) {
  const int64_t columns = attentionColumns(a.query.sizes[3]);
  const Shape shape =
      shapeFor(a.batch() * a.heads(), a.queries(), a.keys(), builder.multiprocessors());
  const int64_t rows = shape.warps / shape.splits * kAttentionQueries;
  for (const char *copies : {"_hopper", ""})
    if (launch({.kernel = kernelNamed("attention", a.query.dtype) + "_" + std::to_string(columns) +
                          copies,
                .blocks = uint64_t((a.queries() + rows - 1) / rows),
                .threads = uint32_t(shape.warps * 32),
                .reads = {a.query, a.key, a.value, a.mask},
                .writes = {a.result},
                .ints = {a.batch(), a.heads(), a.queries(), a.keys(), a.causal, shape.splits},
                .floats = {a.scale},
                .blocksY = uint32_t(a.heads()),
                .blocksZ = uint32_t(a.batch()),
                .sharedBytes = attentionSharedBytes(a.keys(), columns, shape.warps, shape.splits)},
               builder))
      return true;
  return false;
}

/// Adds the record of attention_f32, if it takes these tensors.
bool lowerToF32(const Attention &a, BucketBuilder &builder) {
  const int64_t columns = attentionColumns(a.query.sizes[3]);
  return launch(
      {.kernel = kernelNamed("attention", DType::F32) + "_" + std::to_string(columns),
       .blocks = uint64_t((a.queries() + kAttentionF32Queries - 1) / kAttentionF32Queries),
       .threads = kAttentionF32Threads,
       .reads = {a.query, a.key, a.value, a.mask},
       .writes = {a.result},
       .ints = {a.batch(), a.heads(), a.queries(), a.keys(), a.causal},
       .floats = {a.scale},
       .blocksY = uint32_t(a.heads()),
       .blocksZ = uint32_t(a.batch()),
       .sharedBytes = attentionF32SharedBytes(columns)},
      builder);
}

} // namespace

Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  CGC_CHECK(result.type().isContiguous());
  Attention a{.query = builder.place(node.arg("query").value()),
              .key = builder.place(node.arg("key").value()),
              .value = builder.place(node.arg("value").value()),
              .result = result,
              .mask = std::nullopt,
              .causal = node.arg("is_causal").as<bool>(),
              .scale = *node.arg("scale").asNumber()};
  a.result.sizes = a.query.sizes;
  a.result.strides = {result.strides[0], a.query.sizes[3], result.strides[1], 1};
  const bool masked = !node.arg("attn_mask").isNone();
  if (masked)
    a.mask = broadcastMask(builder.place(node.arg("attn_mask").value()), a.query, a.keys());
  const bool fits = builder.target() == DeviceKind::Cuda && masked == a.mask.has_value() &&
                    a.query.type().numElements() > 0;
  if (fits && (a.query.dtype == DType::F32
                   ? lowerToF32(a, builder)
                   : lowerWithKvInShared(a, builder) || lowerToChunkedKv(a, builder)))
    return Status::ok();
  builder.callThenCopy("aten::scaled_dot_product_attention", "",
                       {builder.arg(node.arg("query")), builder.arg(node.arg("key")),
                        builder.arg(node.arg("value")), builder.arg(node.arg("attn_mask")), 0.0,
                        builder.arg(node.arg("is_causal")), builder.arg(node.arg("scale")), false},
                       {a.result});
  return Status::ok();
}

} // namespace cgc::backend
