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
/// Shared memory that a block may have on every GPU from sm_80 on (those of sm_86 and sm_89 have
/// the least: CUDA C++ Programming Guide, technical specifications), less what the kernels declare.
inline constexpr int64_t kAttentionMemory = (99 << 10) - 1024;
inline constexpr int64_t kAttentionMaxWarps = 8;

/// Columns for which the kernel that takes heads of this width is made, with zeros behind the
/// head's own: "attention_f16_80" takes 72, too. 0: no kernel takes them.
constexpr int64_t attentionColumns(int64_t width) {
  return width < 8 || width > 128 || width % 8 != 0 ? 0
                                                    : std::max<int64_t>(32, (width + 15) / 16 * 16);
}

/// Bytes of a chunk of keys and of values, whose rows are padded by 16 bytes against bank
/// conflicts.
constexpr int64_t attentionStageBytes(int64_t columns) {
  return kAttentionChunk * 2 * (columns + 8) * 2;
}
/// Stages of a ring that holds this many keys, or as many as fit.
constexpr int64_t attentionStages(int64_t keys, int64_t columns) {
  const int64_t fit =
      std::min(kAttentionStages, (kAttentionMemory - 1024) / attentionStageBytes(columns));
  return std::clamp<int64_t>((keys + kAttentionChunk - 1) / kAttentionChunk, 1, fit);
}
/// Warps that split keys exchange their sums in the same memory. 1024 more, to begin at a multiple
/// of it.
constexpr uint32_t attentionSharedBytes(int64_t keys, int64_t columns, int64_t warps,
                                        int64_t splits) {
  const int64_t ring = attentionStages(keys, columns) * attentionStageBytes(columns);
  const int64_t sums = (warps - warps / splits) * 32 * (columns / 2 + 4) * 4;
  return uint32_t(std::max(ring, sums)) + 1024;
}

} // namespace cgc
