// attention_whole and attention_halves: the variants there are, and the launch shape that the
// kernels expect.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace cgc {

/// Queries of a tile: what one warpgroup works on at a time.
inline constexpr int64_t kWholeQueries = 64;
inline constexpr int64_t kWholeMaxTiles = 4, kWholeMaxGroups = 4;
/// Items of a launch: blocks count them in 32 bits, some behind the last.
inline constexpr int64_t kWholeMaxItems = int64_t(1) << 28;
/// Of a stage: for a single query, and for what 16 warps find for it; a multiple of 1024.
inline constexpr uint32_t kWholeSingleBytes = 5120;
static_assert(kWholeSingleBytes % 1024 == 0, "the next stage's tiles are swizzled from there on");
/// The kernels look for missing keys among the last ones only.
inline constexpr int64_t kWholeMostMissing = 72;

/// Numbers of keys that the kernels hold, multiples of 16: "attention_whole_f16_80".
inline constexpr std::array<int64_t, 5> kWholeKeys = {64, 80, 128, 208, 272};

/// The least of them that is enough; 0 if none is.
constexpr int64_t wholeKeys(int64_t keys) {
  for (int64_t held : kWholeKeys)
    if (keys <= held && held - keys <= kWholeMostMissing)
      return held;
  return 0;
}

/// attention_halves: keys of each of the two warpgroups of a block, which share 64 queries.
inline constexpr int64_t kHalfKeys = 144;
/// Whether each of them has a key.
constexpr bool fitsHalves(int64_t keys) {
  return keys > kHalfKeys && keys <= 2 * kHalfKeys;
}
/// Queries, keys and values in rows of 128 bytes; 1024 more, to begin at a multiple of it.
inline constexpr uint32_t kHalvesSharedBytes = (kWholeQueries + 4 * kHalfKeys) * 128 + 1024;

/// How the work is cut: an item is some tiles of queries of one head. A block takes items in turn;
/// its warpgroups share the tiles, and with two stages the next item is fetched meanwhile. One
/// query more than whole tiles is no tile: all warps share its keys.
struct WholeShape {
  int64_t tiles, groups, stages;

  /// Whether heads have that one query more.
  constexpr bool hasSingle(int64_t queries) const {
    return tiles > 1 && queries == tiles * kWholeQueries + 1;
  }
  constexpr int64_t items(int64_t heads, int64_t queries) const {
    const int64_t all = (queries - hasSingle(queries) + kWholeQueries - 1) / kWholeQueries;
    return heads * ((all + tiles - 1) / tiles);
  }
  /// Keys, values and queries in rows of 128 bytes; 1024 more, to begin at a multiple of it.
  constexpr uint32_t sharedBytes(int64_t queries, int64_t keys) const {
    return uint32_t(stages * ((2 * wholeKeys(keys) + tiles * kWholeQueries) * 128 +
                              (hasSingle(queries) ? kWholeSingleBytes : 0)) +
                    1024);
  }
};

/// The tiles of an item that has all of so many queries, or as many as there may be.
constexpr int64_t wholeTiles(int64_t queries) {
  const int64_t full = queries / kWholeQueries, all = (queries + kWholeQueries - 1) / kWholeQueries;
  return std::min(WholeShape{full, 1, 1}.hasSingle(queries) ? full : all, kWholeMaxTiles);
}

} // namespace cgc
