// layer_norm: the launch shape that the kernel expects.
#pragma once

#include <cstdint>

namespace cgc {

/// Threads of a block; each block normalises one row.
inline constexpr uint32_t kLayerNormThreads = 256;

} // namespace cgc
