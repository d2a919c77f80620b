// An op of a library with a CUDA kernel of its own, beside the runtime's kernels, on both
// executors.
#include "runtime/plan/op_library.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/op_library_files.h"

#include <cmath>

namespace cgc::test {
namespace {

class LibraryOp : public CudaTest {};

TEST_F(LibraryOp, IsLaunchedAndCaptured) {
  auto library = OpLibrary::open(exampleOps());
  ASSERT_TRUE(library.isOk()) << library.status().message();
  const SamplePlan sample = opLibraryPlan(DeviceKind::Cuda, (*library)->id(), "example.quick_gelu");
  const Plan plan = *Plan::fromMemory(sample.plan, {});
  EngineOptions options;
  options.opLibraries = {exampleOps()};
  const Result<Engine> engine = Engine::create(plan, options);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();

  std::vector<float> x = {-3, -1, -0.5, 0, 0.25, 1, 2, 40};
  const std::vector<int64_t> sizes = {2, 4};
  std::vector<std::vector<float>> results;
  for (ExecutorKind executor : {ExecutorKind::Stream, ExecutorKind::Graph}) {
    Result<Context> context = Context::create(*engine, {.executor = executor, .poisonArena = true});
    ASSERT_TRUE(context.isOk()) << context.status().message();
    for (int run = 0; run < 3; ++run) {
      std::vector<float> y(x.size());
      const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
      const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
      const Status status = context->run("main", {&in, 1}, {&out, 1});
      ASSERT_TRUE(status.isOk()) << status.message();
      results.push_back(std::move(y));
    }
  }
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(results[0][i], x[i] / (1 + std::exp(-1.702 * x[i])), 1e-5) << x[i];
  for (const auto &result : results)
    EXPECT_EQ(result, results[0]);
}

} // namespace
} // namespace cgc::test
