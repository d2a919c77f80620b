// Tests of select-updates that text tests are too short for.
#include "tests/unit/passes/passes_test_util.h"

#include <gtest/gtest.h>

namespace cgc::passes {
namespace {

/// The patterns settle however many layers there are.
TEST(SelectUpdates, TakesManyLayersAtOnce) {
  constexpr int kLayers = 100;
  std::string inputs = "%g: f32[4,16], %x: f32[4,32], %lr: f32[], %n: i64[]", weights, gradients,
              products, types;
  for (int i = 0; i < kLayers; ++i) {
    const std::string separator = i == 0 ? "" : ", ", number = std::to_string(i);
    inputs += ", %w" + number + ": f32[16,32]";
    weights += separator + "%w" + number;
    gradients += separator + "%p" + number;
    types += separator + "f32[16,32]";
    products += "  %p" + number + " = cgc.weight_gradient(%g, %x) {dtype=f32} : f32[16,32]\n";
  }
  std::string results;
  for (int i = 0; i < kLayers; ++i)
    results += (i == 0 ? "%r" : ", %r") + std::to_string(i);
  const auto module =
      parse("graph @f(" + inputs + ") {\n" + products + "  " + results + " = cgc.sgd([" + weights +
            "], [" + gradients + "], [], %lr, %n) : " + types + "\n  output " + results + "\n}");
  ASSERT_TRUE(module);
  const Status status = runPasses(*module, "select-updates,dce");
  ASSERT_TRUE(status.isOk()) << status.message();
  int updates = 0;
  for (const ir::Node &node : *module->graphs().front()) {
    updates += node.is(ir::OpKind::CgcLinearSgd);
    EXPECT_FALSE(node.is(ir::OpKind::CgcSgd));
  }
  EXPECT_EQ(updates, kLayers);
}

} // namespace
} // namespace cgc::passes
