// checkInputs: which sizes an exported program accepts.
#include "ir/input_shapes.h"

#include "ir/size_guard.h"

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

TEST(InputShapes, GuardsHoldOrAreRefused) {
  InputShapes shapes = sample();
  shapes.inputs[0].example = {2, 6, 3};
  shapes.inputs[1].example = {2};
  const auto check = [&](std::vector<int64_t> x) {
    return checkInputs(shapes, {{"x", DType::F32, x}});
  };
  shapes.guards = {"L['x'].size()[1] != 10", "L['y'].size()[0] == 2"}; // y has its example's sizes.
  EXPECT_TRUE(check({3, 8, 3}).isOk());
  EXPECT_EQ(check({3, 10, 3}).code(), Code::Usage);
  EXPECT_THAT(check({3, 10, 3}).message(), HasSubstr("the condition L['x'].size()[1] != 10"));
  // One that cannot be computed holds for the example alone.
  shapes.guards = {"L['x'].stride()[0] == 1"};
  EXPECT_TRUE(check({2, 6, 3}).isOk());
  EXPECT_THAT(check({2, 8, 3}).message(), HasSubstr("L['x'].stride()[0] == 1"));
}

TEST(SizeGuard, IsComputedAsByPython) {
  const auto sizeOf = [](llvm::StringRef input, unsigned dim) -> std::optional<int64_t> {
    if (input == "x" && dim < 2)
      return dim == 0 ? 3 : 7;
    if (input == "pair_1_z" && dim == 0)
      return 5;
    return std::nullopt;
  };
  for (const char *guard :
       {"L['x'].size()[1] % 2 != 0", "(L['x'].size()[1] % 3) == 1", "L['x'].size()[0] == 3",
        "(-2) + L['x'].size()[0] >= 1", "max(1, (-2) + L['x'].size()[1]) <= L['x'].size()[1]",
        "min(4, 9, L[\"x\"].size()[1]) == 4", "-7 // 2 == -4", "-7 % 4 == 1", "2 - 3 - 4 == -5",
        "2 + 3 * 4 == 14", "(2 + 3) * 4 == 20", "not 2 > 3", "1 < 2 and 4 > 3", "1 > 2 or 4 > 3",
        "not (1 > 2 or 4 < 3)", "1 > 2 and 4 > 3 or 1 == 1", "L['pair'][1]['z'].size()[0] == 5"})
    EXPECT_EQ(guardHolds(guard, sizeOf), true) << guard;
  for (const char *guard : {"L['x'].size()[1] == 6", "L['x'].size()[0] != 3", "not 3 > 2",
                            "1 < 2 and 4 < 3", "1 > 2 or 4 < 3", "3 <= 2", "2 >= 3", "3 < 3"})
    EXPECT_EQ(guardHolds(guard, sizeOf), false) << guard;
  const std::string deep = std::string(1000, '(') + "1" + std::string(1000, ')'),
                    negated = std::string(1000, '-') + "1 == 1";
  for (const std::string &guard : std::vector<std::string>{
           "L['y'].size()[0] == 1", "L['x'].size()[2] == 1", "L['x'].stride()[0] == 1",
           "3 / 2 == 1", "3 // 0 == 1", "1 == 1 1", "1 == ", "", "(1 == 1",
           "isinstance(L['x'], int)", "9223372036854775807 + 1 > 0", "9223372036854775807 * 2 > 0",
           "99999999999999999999 > 0", deep, negated})
    EXPECT_EQ(guardHolds(guard, sizeOf), std::nullopt) << guard;
}

} // namespace
} // namespace cgc::ir
