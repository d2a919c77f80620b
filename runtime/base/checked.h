// Overflow-checked size arithmetic: the only place where sizes that came from a file are added or
// multiplied.
#pragma once

#include <cstdint>
#include <optional>

namespace cgc {

inline std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

/// Whether [offset, offset + size) lies inside [0, total). Never wraps.
inline bool rangeInside(uint64_t offset, uint64_t size, uint64_t total) {
  return size <= total && offset <= total - size;
}

/// `value` rounded up to a multiple of `alignment` (a power of two).
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

} // namespace cgc
