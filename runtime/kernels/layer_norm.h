// layer_norm and add_layer_norm: the launch shape that the kernels expect.
#pragma once

#include <cstdint>

namespace cgc {

/// Threads of a block; each warp normalises one row.
inline constexpr uint32_t kLayerNormThreads = 128;
inline constexpr uint32_t kLayerNormRows = kLayerNormThreads / 32;

} // namespace cgc
