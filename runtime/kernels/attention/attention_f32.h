// attention_f32: the launch shape that the kernels expect.
#pragma once

#include <cstdint>

namespace cgc {

/// A block takes so many queries, and keys and values in chunks of so many.
inline constexpr int64_t kAttentionF32Queries = 32, kAttentionF32Chunk = 64;
inline constexpr uint32_t kAttentionF32Threads = 128;

/// Queries, a chunk of keys, one of values, and the weights of the chunk's keys. Rows are padded by
/// 16 bytes against bank conflicts, but for those of the values.
constexpr uint32_t attentionF32SharedBytes(int64_t columns) {
  return uint32_t(((kAttentionF32Queries + kAttentionF32Chunk) * (columns + 4) +
                   kAttentionF32Chunk * columns + kAttentionF32Queries * (kAttentionF32Chunk + 4)) *
                  4);
}

} // namespace cgc
