// The largest number of ranks of a distributed training.
#pragma once

#include <cstdint>

namespace cgc {

/// For sizes in a plan that depend on the number of ranks.
inline constexpr int64_t kMaxRanks = 1 << 20;

} // namespace cgc
