// Cse: what the text form cannot say, which is whose bytes two parameters hold.
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;

TEST(CseTest, ParametersOnTheSameBytesAreOneIfTheirTypesAreEqual) {
  auto module = parse(R"(
module @Root class="Root" {
  param @matrix : f32[2,4]
  param @tied : f32[2,4]
  param @flat : f32[8]
  graph @forward() -> (f32[2,4], f32[2,4], f32[8]) {
    %0 = get_attr @matrix : f32[2,4]
    %1 = get_attr @tied : f32[2,4]
    %2 = get_attr @flat : f32[8]
    output %0, %1, %2
  }
})");
  ASSERT_TRUE(module);
  auto bytes = std::make_shared<std::vector<std::byte>>(8 * sizeof(float));
  for (const ir::Parameter &parameter : module->parameters())
    module->setParameterData(parameter.name,
                             std::make_shared<ir::TensorData>(parameter.type, *bytes, bytes));
  ASSERT_TRUE(runPasses(*module, "cse").isOk());
  std::vector<std::string> read;
  for (const ir::Arg &output : module->findGraph("forward")->output()->args())
    read.push_back(output.value()->node()->target());
  EXPECT_THAT(read, ElementsAre("matrix", "matrix", "flat"));
}

} // namespace
} // namespace cgc::passes
