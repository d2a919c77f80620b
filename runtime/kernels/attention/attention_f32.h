// attention_f32_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/attention/heads.h"

namespace cgc {

/// Queries of a CTA, and keys (and values) in a chunk.
inline constexpr int64_t kAttentionF32Queries = 32, kAttentionF32Chunk = 64;
inline constexpr uint32_t kAttentionF32Threads = 128;

/// Dynamic shared memory in bytes: the queries, a chunk of keys, one of values, and the softmax
/// weights of the chunk. All rows but those of the values are padded by 16 bytes against bank
/// conflicts.
constexpr uint32_t attentionF32SharedBytes(int64_t columns) {
  return uint32_t(((kAttentionF32Queries + kAttentionF32Chunk) * (columns + 4) +
                   kAttentionF32Chunk * columns + kAttentionF32Queries * (kAttentionF32Chunk + 4)) *
                  4);
}

/// The kernel for heads of `columns` columns (attentionColumns); null if there is none.
const Kernel *attentionF32Kernel(int64_t columns);
/// Checks a launch of attentionF32Kernel(columns).
Result<Heads> checkAttentionF32(const LaunchView &launch, int64_t columns);

} // namespace cgc
