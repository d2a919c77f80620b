// CGC_CHECK: it aborts with condition and place in every build, and evaluates once.
#include "runtime/base/check.h"

#include <gtest/gtest.h>

namespace cgc {
namespace {

TEST(CheckDeathTest, AbortsWithConditionAndPlace) {
  const int size = 3;
  EXPECT_DEATH(
      CGC_CHECK(size == 4 && "four of them"),
      "internal error: .*check_test.cpp:[0-9]+: CGC_CHECK\\(size == 4 && \"four of them\"\\)");
}

TEST(Check, EvaluatesItsConditionOnce) {
  int evaluated = 0;
  CGC_CHECK(++evaluated);
  EXPECT_EQ(evaluated, 1);
}

} // namespace
} // namespace cgc
