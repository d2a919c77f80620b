// squared_error_f32: launch shape and check.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// The CTAs of the one cluster that adds up a loss, and their threads.
inline constexpr uint32_t kSquaredErrorBlocks = 8, kSquaredErrorThreads = 1024;

/// A checked launch.
struct SquaredErrorLaunch {
  int64_t elements;
  bool vectors; ///< Whether elements can be accessed four at a time.
};
Result<SquaredErrorLaunch> checkSquaredError(const LaunchView &launch);

} // namespace cgc
