// Overflow-checked arithmetic at the limits of uint64_t.
#include "runtime/base/checked.h"

#include <gtest/gtest.h>

#include <limits>

namespace cgc {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Checked, DetectsOverflow) {
  EXPECT_EQ(checkedAdd(kMax, 0), kMax);
  EXPECT_EQ(checkedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(checkedMul(uint64_t(1) << 32, (uint64_t(1) << 32) - 1), kMax - 0xffffffffu);
  EXPECT_EQ(checkedMul(uint64_t(1) << 32, uint64_t(1) << 32), std::nullopt);
}

TEST(Checked, RangeInsideNeverWraps) {
  EXPECT_TRUE(rangeInside(0, 10, 10));
  EXPECT_TRUE(rangeInside(10, 0, 10));
  EXPECT_FALSE(rangeInside(1, 10, 10));
  EXPECT_FALSE(rangeInside(kMax, 2, 10));
  EXPECT_FALSE(rangeInside(2, kMax, 10));
  EXPECT_FALSE(rangeInside(11, 0, 10));
}

TEST(Checked, AlignUp) {
  EXPECT_EQ(alignUp(0, 256), 0u);
  EXPECT_EQ(alignUp(1, 256), 256u);
  EXPECT_EQ(alignUp(256, 256), 256u);
  EXPECT_EQ(alignUp(kMax - 255, 256), kMax - 255);
  EXPECT_EQ(alignUp(kMax - 254, 256), std::nullopt);
  EXPECT_EQ(alignUp(kMax, 256), std::nullopt);
}

} // namespace
} // namespace cgc
