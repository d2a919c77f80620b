// uniform_f32: launch shape and check, parts of which dropout_* have in common.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>

namespace cgc {

inline constexpr uint32_t kUniformThreads = 256, kUniformMaxBlocks = 1 << 16;

/// The grid for so many elements, at least 1. A thread computes four elements at a time.
constexpr uint64_t uniformBlocks(uint64_t elements) {
  const uint64_t perBlock = uint64_t(kUniformThreads) * 4;
  return std::min<uint64_t>((elements + perBlock - 1) / perBlock, kUniformMaxBlocks);
}

struct UniformLaunch {
  uint64_t elements; ///< At most 2^34, so that the number of a block of four has 32 bits.
  uint32_t stream;
  bool vectors = false; ///< Whether y begins at a multiple of 16 bytes.
};

/// Checks seed and offset, the first two reads, the stream, the first number, the launch shape and
/// the number of elements.
Result<UniformLaunch> checkNumbers(const LaunchView &launch, uint64_t elements);
Result<UniformLaunch> checkUniform(const LaunchView &launch);

} // namespace cgc
