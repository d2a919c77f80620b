// Overflow-checked arithmetic on sizes, which may come from a file. validate() bounds the bytes of
// a plan's buffers and tensors, so sums and products of sizes that it has accepted do not overflow
// 64 bits.
#pragma once

#include <cstdint>
#include <optional>

namespace cgc {

constexpr std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

constexpr std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

/// Whether [offset, offset + size) lies inside [0, total). The check itself cannot overflow.
constexpr bool rangeInside(uint64_t offset, uint64_t size, uint64_t total) {
  return size <= total && offset <= total - size;
}

/// `value` rounded up to a multiple of `alignment`, a power of two. std::nullopt if the result does
/// not fit 64 bits.
constexpr std::optional<uint64_t> alignUp(uint64_t value, uint64_t alignment) {
  uint64_t r = 0;
  if (__builtin_add_overflow(value, alignment - 1, &r))
    return std::nullopt;
  return r & ~(alignment - 1);
}

} // namespace cgc
