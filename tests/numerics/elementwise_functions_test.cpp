// The functions of elementwise_ops.def: an op's `; numerics` graph launches each of them, and its
// reference equals LibTorch in f32, f16 and bf16.
#include "runtime/kernels/pointwise/elementwise.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/op_tests.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <regex>

namespace cgc::test {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr const char *kFunctions[] = {
#define CGC_ELEMENTWISE_OP(NAME, OPERANDS) #NAME,
#include "runtime/kernels/pointwise/elementwise_ops.def"
};

/// The text with this dtype in place of f32 in the types of tensors.
std::string inDType(const std::string &graph, DType dtype) {
  static const std::regex f32(R"(\bf32\[)");
  return std::regex_replace(graph, f32, std::string(dtypeName(dtype)) + "[");
}

/// The plan's only record, if it is a launch of elementwise in this dtype.
const KernelLaunch *elementwiseLaunch(const PlanData &plan, DType dtype) {
  const std::vector<LaunchRecord> &records = plan.entries[0].buckets[0].records;
  const auto *launch = records.size() == 1 ? std::get_if<KernelLaunch>(&records[0].op) : nullptr;
  return launch && launch->kernel == "elementwise_" + std::string(dtypeName(dtype)) ? launch
                                                                                    : nullptr;
}

/// Compares the results for inputs from tiny to huge with LibTorch's in f32, rounded: up to a unit
/// in the last place of `dtype`, the errors of f32 arithmetic, and cancellation.
void expectLibTorchsResults(LoweredGraph &graph, const std::string &reference, DType dtype) {
  const double tolerance = dtype == DType::F16 ? 0x1p-10 : dtype == DType::BF16 ? 0x1p-7 : 2e-6;
  for (const double scale : {1e-3, 0.3, 1.0, 3.0, 10.0, 300.0, 2e4}) {
    SCOPED_TRACE("scale " + std::to_string(scale));
    Tensors inputs = graph.randomInputs("g"), widened;
    for (at::Tensor &input : inputs) {
      input.mul_(scale);
      widened.push_back(input.to(at::kFloat));
    }
    const auto outputs = graph.run("g", inputs);
    ASSERT_TRUE(outputs) << outputs.status().message();
    const Tensors expected = runWithLibTorch(reference, widened);
    ASSERT_EQ(outputs->size(), 1u);
    const at::Tensor want = expected[0].to(torchType(dtype)).to(at::kDouble);
    EXPECT_TRUE(at::allclose((*outputs)[0].to(at::kDouble), want, tolerance, 1e-6,
                             /*equal_nan=*/true))
        << (*outputs)[0] << "\nexpected\n"
        << want << "\nof\n"
        << inputs[0];
  }
}

TEST(ElementwiseFunctions, EqualLibTorchInEveryDType) {
  std::vector<bool> tested(kNumElementwiseOps);
  for (const NumericsCase &c : opTests().cases) {
    const LoweredGraph inF32(c.graph, c.bound, DeviceKind::Cuda, ExecutorKind::Reference);
    ASSERT_TRUE(inF32.isOk()) << c.graph;
    const KernelLaunch *launch = elementwiseLaunch(inF32.plan(), DType::F32);
    if (!launch)
      continue;
    tested[launch->ints[0]] = true;
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      SCOPED_TRACE(c.name + " in " + std::string(dtypeName(dtype)));
      LoweredGraph graph(inDType(c.graph, dtype), c.bound, DeviceKind::Cuda,
                         ExecutorKind::Reference);
      ASSERT_TRUE(graph.isOk());
      ASSERT_TRUE(elementwiseLaunch(graph.plan(), dtype)) << "the plan is not one launch";
      expectLibTorchsResults(graph, c.reference, dtype);
    }
  }
  for (int i = 0; i < kNumElementwiseOps; ++i)
    EXPECT_TRUE(tested[i]) << "no '; numerics' graph in f32 is one launch of " << kFunctions[i];
}

} // namespace
} // namespace cgc::test
