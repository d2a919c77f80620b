// attention: the launch shape that the kernels expect.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cgc {

/// Most images, and most heads, of all attention kernels: CUDA's limit for the second and third
/// dimension of a grid, which that of `attention` has.
inline constexpr int64_t kAttentionMostOfGrid = 65535;
/// Each warp of a block takes 16 queries.
inline constexpr int64_t kAttentionQueries = 16;
/// Keys and values come in chunks of so many, of which shared memory holds up to kAttentionStages.
inline constexpr int64_t kAttentionChunk = 64, kAttentionStages = 5;
inline constexpr int64_t kAttentionMaxWarps = 8;

/// Columns for which the kernel that takes heads of this width is made, with zeros behind the
/// head's own: "attention_f16_80" takes 72, too. 0: no kernel takes them.
constexpr int64_t attentionColumns(int64_t width) {
  return width < 8 || width > 128 || width % 8 != 0 ? 0
                                                    : std::max<int64_t>(32, (width + 15) / 16 * 16);
}

/// Stages of a ring that holds this many keys, or as many as fit.
constexpr int64_t attentionStages(int64_t keys) {
  return std::clamp<int64_t>((keys + kAttentionChunk - 1) / kAttentionChunk, 1, kAttentionStages);
}
/// Rows of keys and values are padded by 16 bytes against bank conflicts. Warps that split keys
/// exchange their sums in the same memory. 1024 more, to begin at a multiple of it.
constexpr uint32_t attentionSharedBytes(int64_t keys, int64_t columns, int64_t warps,
                                        int64_t splits) {
  const int64_t ring = attentionStages(keys) * kAttentionChunk * 2 * (columns + 8) * 2;
  const int64_t sums = (warps - warps / splits) * 32 * (columns / 2 + 4) * 4;
  return uint32_t(std::max(ring, sums)) + 1024;
}

} // namespace cgc
