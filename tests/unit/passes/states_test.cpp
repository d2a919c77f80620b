// States: passes on states that share memory or have equal bytes, which the text form cannot
// express.
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;

constexpr const char *kTwoStates = R"(
module @Root class="Root" {
  module @embedding {
    state @weight : f32[2,4]
  }
  module @head {
    state @weight : f32[2,4]
  }
  graph @forward() -> (f32[2,4], f32[2,4]) {
    %0 = get_attr @head.weight : f32[2,4]
    %1 = get_attr @embedding.weight : f32[2,4]
    output %0, %1
  }
})";

/// Gives the two states bytes, one tensor or two equal ones, runs the passes, and returns what the
/// outputs read.
std::vector<std::string> readAfter(const char *passes, bool isTied) {
  auto module = parse(kTwoStates);
  const auto bytes = std::make_shared<std::vector<std::byte>>(8 * sizeof(float));
  const auto make = [&] {
    return std::make_shared<ir::TensorData>(ir::TensorType::dense(DType::F32, {2, 4}), *bytes,
                                            bytes);
  };
  const auto first = make();
  module->findSubmodule("embedding")->setParameterData("weight", first);
  module->findSubmodule("head")->setParameterData("weight", isTied ? first : make());
  EXPECT_TRUE(runPasses(*module, passes).isOk());
  std::vector<std::string> read;
  for (const ir::Arg &output : module->findGraph("forward")->outputs())
    read.push_back(output.value()->node()->target());
  return read;
}

TEST(States, OneTensorWithTwoNamesIsOneState) {
  EXPECT_THAT(readAfter("tie-states", true), ElementsAre("embedding.weight", "embedding.weight"));
}

TEST(States, EqualBytesAreTwoStates) {
  EXPECT_THAT(readAfter("tie-states,fold,cse", false),
              ElementsAre("head.weight", "embedding.weight"));
}

} // namespace
} // namespace cgc::passes
