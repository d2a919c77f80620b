// checkInputs: which sizes an exported program accepts.
#include "ir/input_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::ir {
namespace {

using testing::HasSubstr;

/// x: f32[b, 2 * n, 3] and y: i64[b], with b from 1 to 8 and n of at least 2.
InputShapes sample() {
  InputShapes shapes;
  shapes.inputs = {{"x", DType::F32, {{"b", 1, 0}, {"n", 2, 0}, {"", 0, 3}}, {}},
                   {"y", DType::I64, {{"b", 1, 0}}, {}}};
  shapes.ranges["b"] = {1, 8};
  shapes.ranges["n"] = {2, std::nullopt};
  return shapes;
}

Status check(std::vector<int64_t> x, std::vector<int64_t> y, DType dtype = DType::F32) {
  return checkInputs(sample(), {{"x", dtype, x}, {"y", DType::I64, y}});
}

TEST(InputShapes, SizesInRangeFit) {
  EXPECT_TRUE(check({1, 4, 3}, {1}).isOk());
  EXPECT_TRUE(check({8, 100, 3}, {8}).isOk());
}

TEST(InputShapes, OtherInputsAreRefusedByName) {
  const auto says = [](const Status &status, const std::string &text) {
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  says(check({9, 4, 3}, {9}), "dimension 0 of input 'x' is 9, and the program was exported for b "
                              "with b from 1 to 8");
  says(check({1, 2, 3}, {1}), "dimension 1 of input 'x' is 2, and the program was exported for 2 * "
                              "n with n at least 2");
  says(check({1, 5, 3}, {1}), "dimension 1 of input 'x' is 5");
  says(check({1, 4, 4}, {1}), "dimension 2 of input 'x' is 4, and the program was exported for 3");
  says(check({1, 4, 3}, {2}), "dimension 0 of input 'y' is 2, and the program was exported for b "
                              "with the same b as dimension 0 of input 'x', which makes it 1");
  says(check({1, 4}, {1}), "input 'x' has 2 dimensions, and the program was exported for 3");
  says(check({1, 4, 3}, {1}, DType::F16), "input 'x' is f16, and the program was exported for f32");
}

} // namespace
} // namespace cgc::ir
