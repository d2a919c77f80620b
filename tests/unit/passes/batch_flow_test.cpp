// findBatchDifference: which graphs of two batches differ in more than sizes.
#include "passes/batch_flow.h"

#include "tests/unit/passes/passes_test_util.h"

#include <gtest/gtest.h>

namespace cgc::passes {
namespace {

std::unique_ptr<ir::Module> ofSizes(int64_t batch, int64_t elements) {
  const std::string type = "f32[" + std::to_string(batch) + ",2]",
                    flat = "f32[" + std::to_string(elements) + "]";
  return parse("graph @g(%x: " + type + ") {\n%0 = aten.full() {size=[" + std::to_string(elements) +
               "], fill_value=1.0, dtype=f32} : " + flat + "\noutput %0\n}");
}

TEST(BatchDifference, IsASizeThatIsNoMultipleOfTheBatch) {
  const auto differ = [](int64_t first, int64_t second) {
    const auto a = ofSizes(2, first), b = ofSizes(3, second);
    return findBatchDifference({a->findGraph("g"), 2}, {b->findGraph("g"), 3}).has_value();
  };
  EXPECT_FALSE(differ(4, 6));
  EXPECT_FALSE(differ(5, 5));
  EXPECT_TRUE(differ(4, 7));
  EXPECT_TRUE(differ(5, 6));
  EXPECT_TRUE(differ(4, 9));
}

} // namespace
} // namespace cgc::passes
