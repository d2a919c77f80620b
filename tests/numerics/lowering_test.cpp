// Lowering: the `; numerics` graphs of the file tests, lowered, run, and compared with direct calls
// of LibTorch.
#include "backend/lowering.h"
#include "ir/op_def.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/op_tests.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>

namespace cgc::test {
namespace {

using Tensors = std::vector<at::Tensor>;

/// `tolerance` is relative; the absolute tolerance is a tenth of it.
void expectNear(const at::Tensor &actual, const at::Tensor &expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  ASSERT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected.to(at::kDouble), tolerance,
                           tolerance / 10, /*equal_nan=*/true))
      << actual << "\nexpected\n"
      << expected;
}

/// Compares each output with `tolerance(type)`.
template <class Fn> void expectNear(const Tensors &actual, const Tensors &expected, Fn tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expectNear(actual[i], expected[i], tolerance(expected[i].scalar_type()));
  }
}

bool hasGpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

/// Loads LibTorch's CUDA library before any test uses LibTorch, which would otherwise conclude
/// permanently that there is none.
class CudaFirst : public testing::Environment {
  void SetUp() override {
    if (hasGpu()) {
      ASSERT_TRUE(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL)) << dlerror();
    }
  }
};
const testing::Environment *const kCudaFirst =
    testing::AddGlobalTestEnvironment(new CudaFirst); // NOLINT: gtest owns it.

class Lowered : public testing::TestWithParam<NumericsCase> {};

TEST_P(Lowered, EqualsLibTorch) {
  LoweredGraph graph(GetParam().graph, GetParam().bound);
  ASSERT_TRUE(graph.isOk()) << GetParam().graph;
  Tensors inputs = graph.randomInputs("g");
  auto outputs = graph.run("g", inputs);
  ASSERT_TRUE(outputs) << outputs.status().message();
  expectNear(*outputs, runWithLibTorch(GetParam().reference, inputs),
             [](at::ScalarType) { return 1e-5; });
}

/// The plan for cuda: by the reference executor on any machine, and on a GPU if there is one.
TEST_P(Lowered, EqualsTheCpuForCuda) {
  LoweredGraph onHost(GetParam().graph, GetParam().bound, DeviceKind::Cuda,
                      ExecutorKind::Reference);
  ASSERT_TRUE(onHost.isOk()) << GetParam().graph;
  Tensors inputs = onHost.randomInputs("g");
  auto outputs = onHost.run("g", inputs);
  ASSERT_TRUE(outputs) << outputs.status().message();
  expectNear(*outputs, runWithLibTorch(GetParam().reference, inputs), cudaTolerance);
  if (!hasGpu())
    return;
  LoweredGraph graph(GetParam().graph, GetParam().bound, DeviceKind::Cuda);
  ASSERT_TRUE(graph.isOk()) << GetParam().graph;
  inputs = graph.randomInputs("g");
  auto streamed = graph.run("g", inputs, ExecutorKind::Stream);
  ASSERT_TRUE(streamed) << streamed.status().message();
  expectNear(*streamed, runWithLibTorch(GetParam().reference, inputs), cudaTolerance);
  auto replayed = graph.run("g", inputs, ExecutorKind::Graph);
  ASSERT_TRUE(replayed) << replayed.status().message();
  for (size_t i = 0; i < streamed->size(); ++i)
    EXPECT_EQ(
        std::memcmp((*streamed)[i].data_ptr(), (*replayed)[i].data_ptr(), (*streamed)[i].nbytes()),
        0)
        << "output " << i;
}

INSTANTIATE_TEST_SUITE_P(Cases, Lowered, testing::ValuesIn(opTests().cases),
                         [](const auto &info) { return info.param.name; });

TEST(LoweredCases, CoverEveryOpThatMakesRecords) {
  std::string missing;
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    auto op = static_cast<ir::OpKind>(i);
    if (backend::lowering(op).kind == backend::Lowering::Kind::Host ||
        // LibTorch has no such ops; plugin_test.cpp and host_module_test.cpp of tests/e2e compare
        // some.
        op == ir::OpKind::CgcLibraryOp || op == ir::OpKind::CgcHostCall ||
        // Nor these, which need other ranks; train_ranks_test.cpp of tests/e2e runs them.
        op == ir::OpKind::CgcAllReduce || op == ir::OpKind::CgcAllGather ||
        op == ir::OpKind::CgcReduceScatter || op == ir::OpKind::CgcBroadcast ||
        // The pass random-numbers replaces these ops; random_numbers_test.cpp runs them.
        op == ir::OpKind::Rand || op == ir::OpKind::RandLike || op == ir::OpKind::Randn ||
        op == ir::OpKind::RandnLike || op == ir::OpKind::Bernoulli)
      continue;
    bool covered = false;
    for (const NumericsCase &c : opTests().cases)
      covered |= c.graph.find(" " + ir::opName(op).str() +
                              (op == ir::OpKind::Fallback ? " " : "(")) != std::string::npos;
    if (!covered)
      missing += " " + ir::opName(op).str(); // Its file test has no '; numerics'.
  }
  EXPECT_EQ(missing, "");
}

} // namespace
} // namespace cgc::test
