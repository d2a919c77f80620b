// The variants, launch shapes and checks of attention_resident_kv_* and attention_split_kv_*.
#pragma once

#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/tensor_map_shape.h"

#include <algorithm>
#include <array>

namespace cgc {

/// Queries of a tile, which one warpgroup computes.
inline constexpr int64_t kResidentKvQueries = 64;
inline constexpr int64_t kResidentKvMaxTiles = 4, kResidentKvMaxGroups = 4;
/// Upper limit of the items of a launch. CTAs count items in 32 bits, and beyond the last one.
inline constexpr int64_t kResidentKvMaxItems = int64_t(1) << 28;
/// Bytes of a stage for a single query and the partial results of 16 warps for it; a multiple of
/// 1024.
inline constexpr uint32_t kResidentKvSingleBytes = 5120;
static_assert(kResidentKvSingleBytes % 1024 == 0,
              "the next stage's tiles are swizzled from there on");
/// The most keys that a kernel may hold beyond those of the tensor; it masks only the last ones.
inline constexpr int64_t kResidentKvMaxPaddedKeys = 72;

/// The key capacities of the kernels, multiples of 16: "attention_resident_kv_f16_80".
inline constexpr std::array<int64_t, 5> kResidentKvKeys = {64, 80, 128, 208, 272};

/// The smallest capacity for this many keys; 0 if no kernel takes them.
constexpr int64_t residentKvKeys(int64_t keys) {
  for (int64_t held : kResidentKvKeys)
    if (keys <= held && held - keys <= kResidentKvMaxPaddedKeys)
      return held;
  return 0;
}

/// attention_split_kv: the key capacity of each of the two warpgroups of a CTA, which share 64
/// queries.
inline constexpr int64_t kSplitKvKeys = 144;
/// Whether attention_split_kv takes this many keys: each warpgroup needs one.
constexpr bool fitsSplitKv(int64_t keys) {
  return keys > kSplitKvKeys && keys <= 2 * kSplitKvKeys;
}
/// Dynamic shared memory in bytes: queries, keys and values in rows of 128 bytes. 1024 bytes more
/// align the first tile.
inline constexpr uint32_t kSplitKvSharedBytes =
    (kResidentKvQueries + 4 * kSplitKvKeys) * 128 + 1024;

/// The division of the work. An item is up to `tiles` tiles of queries of one head. A CTA of
/// `groups` warpgroups computes items in turn; its warpgroups share the tiles of an item, and with
/// two stages it loads the next item meanwhile. A single query beyond full tiles is no tile of its
/// own: all warps of the CTA share its keys.
struct ResidentKvShape {
  int64_t tiles, groups, stages;

  /// Whether heads have such a single query.
  constexpr bool hasSingle(int64_t queries) const {
    return tiles > 1 && queries == tiles * kResidentKvQueries + 1;
  }
  constexpr int64_t items(int64_t heads, int64_t queries) const {
    const int64_t all =
        (queries - hasSingle(queries) + kResidentKvQueries - 1) / kResidentKvQueries;
    return heads * ((all + tiles - 1) / tiles);
  }
  /// Dynamic shared memory in bytes: keys, values and queries in rows of 128 bytes. 1024 bytes more
  /// align the first tile.
  constexpr uint32_t sharedBytes(int64_t queries, int64_t keys) const {
    return uint32_t(stages * ((2 * residentKvKeys(keys) + tiles * kResidentKvQueries) * 128 +
                              (hasSingle(queries) ? kResidentKvSingleBytes : 0)) +
                    1024);
  }
};

/// The division of the work of attention_split_kv: a tile for each CTA of two warpgroups.
inline constexpr ResidentKvShape kSplitKvShape{1, 2, 1};

/// The tiles of an item with all queries of a head, up to the maximum.
constexpr int64_t residentKvTiles(int64_t queries) {
  const int64_t full = queries / kResidentKvQueries,
                all = (queries + kResidentKvQueries - 1) / kResidentKvQueries;
  return std::min(ResidentKvShape{full, 1, 1}.hasSingle(queries) ? full : all, kResidentKvMaxTiles);
}

/// Queries of a tile that one warp computes: the rows in a box of a TMA store of results.
inline constexpr int64_t kResidentKvWarpQueries = kResidentKvQueries / 4;
/// TMA boxes of keys, and of values, for this key capacity: a box has up to 256 rows.
constexpr int64_t residentKvBoxes(int64_t keys) {
  return keys > 256 ? 2 : 1;
}

/// attention_resident_kv for this many keys; null if there is none.
const Kernel *residentKvKernel(DType dtype, int64_t keys);
/// attention_split_kv; null if there is none of this dtype.
const Kernel *splitKvKernel(DType dtype);

/// The positions of tiles and stages in the ints of attention_resident_kv, after AttentionNumbers.
inline constexpr size_t kResidentKvTilesInt = 5, kResidentKvStagesInt = 6;

/// A checked launch of either kernel.
struct ResidentKvLaunch {
  int64_t batch, heads, queries, keys;
  bool causal;
  double scale;
  ResidentKvShape shape; ///< kSplitKvShape for attention_split_kv.
  HeadStrides qStrides, outStrides;
  TensorMapShape q, k, v;
  TensorMapShape out; ///< attention_resident_kv only.

  int64_t items() const { return shape.items(batch * heads, queries); }
};
/// Checks a launch of the kernel with this key capacity.
Result<ResidentKvLaunch> checkResidentKv(const LaunchView &launch, DType dtype, int64_t capacity);
Result<ResidentKvLaunch> checkSplitKv(const LaunchView &launch, DType dtype);

} // namespace cgc
