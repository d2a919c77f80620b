// Divider against division, at the limits of its range.
#include "runtime/kernels/divider.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cgc {
namespace {

constexpr uint32_t kMost = (uint32_t(1) << 31) - 1;

void expectQuotients(uint32_t divisor) {
  const Divider divider(divisor);
  for (const uint64_t times : {uint64_t(0), uint64_t(1), uint64_t(2), uint64_t(1000),
                               uint64_t(kMost) / divisor / 2, uint64_t(kMost) / divisor})
    for (const int64_t more : {-1, 0, 1}) {
      const int64_t n = int64_t(times * divisor) + more;
      if (n < 0 || n > int64_t(kMost))
        continue;
      EXPECT_EQ(divider.quotient(uint32_t(n)), uint32_t(n) / divisor) << n << " / " << divisor;
    }
  EXPECT_EQ(divider.quotient(kMost), kMost / divisor) << divisor;
}

TEST(Divider, DividesAsDivisionDoes) {
  for (uint32_t divisor = 1; divisor <= 300; ++divisor)
    expectQuotients(divisor);
  for (int bit = 9; bit < 31; ++bit)
    for (const uint32_t divisor :
         {(uint32_t(1) << bit) - 1, uint32_t(1) << bit, (uint32_t(1) << bit) + 1})
      expectQuotients(divisor);
  expectQuotients(kMost);
}

} // namespace
} // namespace cgc
