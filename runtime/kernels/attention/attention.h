// attention_*: the launch shapes and the check; and limits that all attention kernels have in
// common.
#pragma once

#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/tensor_map_shape.h"

#include <algorithm>

namespace cgc {

/// Upper limit of the batch size and of the number of heads: CUDA's limit for the second and third
/// dimension of a grid, which attention_* uses for them. All attention kernels keep to it.
inline constexpr int64_t kMaxGridYZ = 65535;
/// Queries of a warp.
inline constexpr int64_t kAttentionQueries = 16;
/// Keys (and values) in a chunk. Shared memory holds up to kAttentionStages chunks.
inline constexpr int64_t kAttentionChunk = 64, kAttentionStages = 5;
/// Dynamic shared memory in bytes that a CTA may have on every GPU from sm_80 on, less what the
/// kernels declare statically. sm_86 and sm_89 have the least: 99 KiB (CUDA C++ Programming Guide,
/// technical specifications).
inline constexpr int64_t kAttentionMemory = (99 << 10) - 1024;
inline constexpr int64_t kAttentionMaxWarps = 8;

/// The number of columns of the kernel for heads of this width: the width rounded up to a multiple
/// of 16, at least 32. The kernel pads heads with zeros: "attention_f16_80" also takes width 72.
/// 0 if no kernel takes the width.
constexpr int64_t attentionColumns(int64_t width) {
  return width < 8 || width > 128 || width % 8 != 0 ? 0
                                                    : std::max<int64_t>(32, (width + 15) / 16 * 16);
}

/// Bytes of a chunk of keys and one of values, with rows padded by 16 bytes against bank conflicts.
constexpr int64_t attentionStageBytes(int64_t columns) {
  return kAttentionChunk * 2 * (columns + 8) * 2;
}
/// Pipeline stages for this many keys: one for each chunk, or as many as fit.
constexpr int64_t attentionStages(int64_t keys, int64_t columns) {
  const int64_t fit =
      std::min(kAttentionStages, (kAttentionMemory - 1024) / attentionStageBytes(columns));
  return std::clamp<int64_t>((keys + kAttentionChunk - 1) / kAttentionChunk, 1, fit);
}
/// Dynamic shared memory of a launch, in bytes. Warps that split keys exchange partial results in
/// the memory of the stages. 1024 bytes more align the first tile.
constexpr uint32_t attentionSharedBytes(int64_t keys, int64_t columns, int64_t warps,
                                        int64_t splits) {
  const int64_t ring = attentionStages(keys, columns) * attentionStageBytes(columns);
  const int64_t sums = (warps - warps / splits) * 32 * (columns / 2 + 4) * 4;
  return uint32_t(std::max(ring, sums)) + 1024;
}

/// The kernel for heads of `columns` columns (attentionColumns), which loads keys and values with
/// TMA if `useTma`; null if there is none.
const Kernel *attentionKernel(DType dtype, int64_t columns, bool useTma);

/// The position of `splits` in the ints of a launch, after AttentionNumbers.
inline constexpr size_t kAttentionSplitsInt = 5;

/// A checked launch.
struct AttentionLaunch {
  Heads heads;
  int64_t splits;      ///< Warps that share 16 queries.
  TensorMapShape k, v; ///< Only of kernels that load with TMA.
};
/// Checks a launch of attentionKernel(dtype, columns, useTma).
Result<AttentionLaunch> checkAttention(const LaunchView &launch, DType dtype, int64_t columns,
                                       bool useTma);

} // namespace cgc
