// Divider: division by a number that the host knows at launch, as a multiplication and a shift.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CGC_HOST_DEVICE __host__ __device__
#else
#define CGC_HOST_DEVICE
#endif

namespace cgc {

/// Divides numbers below 2^31 by a divisor between 1 and 2^31 - 1 (Granlund and Montgomery, 1994).
struct Divider {
  uint32_t divisor = 1, factor = 1, shift = 0;

  Divider() = default;
  explicit Divider(uint32_t by) : divisor(by) {
    while ((uint64_t(1) << shift) < by)
      ++shift;
    factor = static_cast<uint32_t>((((uint64_t(1) << shift) - by) << 32) / by + 1);
  }
  CGC_HOST_DEVICE uint32_t quotient(uint32_t n) const {
    return (static_cast<uint32_t>((uint64_t(n) * factor) >> 32) + n) >> shift;
  }
};

} // namespace cgc

#undef CGC_HOST_DEVICE
