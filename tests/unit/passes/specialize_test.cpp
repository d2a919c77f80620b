// Specialize: constants whose bytes it reads, which the text form cannot express.
#include "tests/unit/passes/passes_test_util.h"

namespace cgc::passes {
namespace {

/// The type of x, f32[3,1], times a size times a constant.
std::string typeOfProduct(const std::string &constant) {
  auto module = parse("module @Root class=\"Root\" {\n  const @c : " + constant + R"(
  graph @forward(%x: f32[3,1]) -> dynamic {
    %c = get_attr @c : )" +
                      constant + R"(
    %0 = aten.size(%x) {dim=0} : dynamic
    %1 = prim.num_to_tensor(%0) : dynamic
    %2 = aten.mul(%1, %c) : dynamic
    %3 = aten.mul(%x, %2) : dynamic
    output %3
  }
})");
  const ir::TensorType type = module->findParameter("c")->type;
  const std::vector<std::byte> bytes(type.numBytes());
  module->setParameterData("c", ir::TensorData::copyOf(type, bytes));
  const Status status = runPasses(*module, "specialize");
  EXPECT_TRUE(status.isOk()) << status.message();
  return toString(module->findGraph("forward")->outputs()[0].value()->type());
}

/// A trace has the factor of a size as such a constant.
TEST(Specialize, OnlyAConstantWithoutDimensionsIsANumber) {
  EXPECT_EQ(typeOfProduct("f32[]"), "f32[3,1]");
  EXPECT_EQ(typeOfProduct("f32[4]"), "f32[3,4]");
}

} // namespace
} // namespace cgc::passes
