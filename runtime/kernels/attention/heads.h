// The view that attention kernels have of queries, keys, values and results, and the checks of
// them.
#pragma once

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/kernel_checks.h"

#include <algorithm>
#include <optional>

namespace cgc {

constexpr float kLog2e = 1.4426950408889634f;

/// Strides in elements of a tensor [batch, heads, rows, columns] with dense columns.
struct HeadStrides {
  int64_t batch, head, row;
};

/// The strides of a tensor [batch, heads, rows, columns] of `dtype`. A stride of 0 broadcasts.
/// Nothing if the tensor has other sizes, columns that are not dense, or an address or strides that
/// are no multiples of `vector` elements.
inline std::optional<HeadStrides> headStridesOf(const TensorView &t, DType dtype, int64_t batch,
                                                int64_t heads, int64_t rows, int64_t columns,
                                                int64_t vector = 8) {
  const int64_t sizes[] = {batch, heads, rows, columns};
  if (!t.data || t.dtype != dtype || !std::ranges::equal(t.sizes, sizes) ||
      reinterpret_cast<uintptr_t>(t.data) % (vector * dtypeSize(dtype)) != 0)
    return std::nullopt;
  if (t.strides.empty())
    return HeadStrides{heads * rows * columns, rows * columns, columns};
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > 1 && t.strides[i] % vector != 0)
      return std::nullopt;
  if (columns > 1 && t.strides[3] != 1)
    return std::nullopt;
  return HeadStrides{t.strides[0], t.strides[1], t.strides[2]};
}

/// The arguments of a kernel of attention with an optional mask. Reads: q, k, v, mask or none.
/// Writes: out. The ints begin with batch, heads, queries, keys, causal; the float is the scale.
struct Heads {
  int64_t batch, heads, queries, keys, width;
  bool causal;
  double scale;
  HeadStrides q, k, v, mask, out;
};

/// Checks and returns the arguments of a kernel for heads of `columns` columns (attentionColumns),
/// all in `dtype`. InvalidFile if sizes, strides or numbers are not supported.
inline Result<Heads> headsOf(const KernelArguments &a, DType dtype, int64_t columns) {
  const int64_t batch = a.ints[0], heads = a.ints[1], queries = a.ints[2], keys = a.ints[3],
                causal = a.ints[4];
  const int64_t most = 1 << 24;
  if (batch < 1 || heads < 1 || queries < 1 || keys < 1 || batch > kAttentionMostOfGrid ||
      heads > kAttentionMostOfGrid || queries > most || keys > most || causal < 0 || causal > 1)
    return refuseArguments("batch, heads, queries and keys have to be positive and not too many");
  if (!(a.floats[0] > 0))
    return refuseArguments("scale has to be positive");
  const int64_t width = a.reads[0].sizes.empty() ? 0 : a.reads[0].sizes.back();
  const auto strides = [&](const TensorView &t, int64_t rows) {
    return headStridesOf(t, dtype, batch, heads, rows, width, 16 / dtypeSize(dtype));
  };
  const auto q = strides(a.reads[0], queries), k = strides(a.reads[1], keys),
             v = strides(a.reads[2], keys), out = strides(a.writes[0], queries);
  const auto mask =
      a.reads[3].data ? headStridesOf(a.reads[3], dtype, batch, heads, queries, keys, /*vector=*/1)
                      : std::optional(HeadStrides{});
  if (attentionColumns(width) != columns || !q || !k || !v || !out || !mask)
    return refuseArguments("q, k, v and out [batch, heads, rows, width] and mask [batch, heads, "
                           "queries, keys] need a width that the kernel is for, dense columns, and "
                           "rows at multiples of 16 bytes");
  return Heads{.batch = batch,
               .heads = heads,
               .queries = queries,
               .keys = keys,
               .width = width,
               .causal = causal == 1,
               .scale = a.floats[0],
               .q = *q,
               .k = *k,
               .v = *v,
               .mask = *mask,
               .out = *out};
}

/// The kernel parameter of attention with an optional mask.
template <class T> struct HeadsParameters {
  const T *q, *k, *v, *mask; ///< mask may be null; the kernel adds it to the scaled scores.
  T *out;
  HeadStrides qStrides, kStrides, vStrides, maskStrides, outStrides;
  int queries, keys, width;
  float scale; ///< The scale times `scaleFactor` of headsParameters().
  bool causal; ///< Query i attends to keys 0 to i.
};

template <class T>
HeadsParameters<T> headsParameters(const KernelArguments &a, const Heads &heads,
                                   double scaleFactor = 1) {
  return {.q = static_cast<const T *>(a.reads[0].data),
          .k = static_cast<const T *>(a.reads[1].data),
          .v = static_cast<const T *>(a.reads[2].data),
          .mask = static_cast<const T *>(a.reads[3].data),
          .out = static_cast<T *>(a.writes[0].data),
          .qStrides = heads.q,
          .kStrides = heads.k,
          .vStrides = heads.v,
          .maskStrides = heads.mask,
          .outStrides = heads.out,
          .queries = int(heads.queries),
          .keys = int(heads.keys),
          .width = int(heads.width),
          .scale = static_cast<float>(heads.scale * scaleFactor),
          .causal = heads.causal};
}

} // namespace cgc
