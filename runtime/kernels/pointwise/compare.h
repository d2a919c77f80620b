// CompareOp: the comparisons of compare_*.
#pragma once

#include <cstdint>

namespace cgc {

/// Plans store the values: append, never reorder.
enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
inline constexpr int kNumCompareOps = 6;

} // namespace cgc
