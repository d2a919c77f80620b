// compare: what it finds out.
#pragma once

#include <cstdint>

namespace cgc {

/// A value's place is its value in plans: append, never move.
enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
inline constexpr int kNumCompareOps = 6;

} // namespace cgc
