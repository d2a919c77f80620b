// An op of a user's library: the lowering of cgc.library_op, and its CUDA kernel on both executors.
#include "backend/backend.h"
#include "ir/text/text.h"
#include "runtime/plan/op_library.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/op_library_files.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

namespace cgc::test {
namespace {

using testing::HasSubstr;

Result<PlanData> lowered(const std::string &body, DeviceKind target,
                         const std::vector<std::string> &libraries) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule("graph @main(%x: f32[2,4], %i: i64[2,4]) {\n" + body + "\n}",
                                "test", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  backend::LowerOptions options(target);
  for (const std::string &path : libraries)
    options.opLibraries.push_back(*OpLibrary::open(path));
  const backend::EntryBucket bucket{"main", module->graphs()[0].get()};
  CGC_ASSIGN_OR_RETURN(backend::CompiledPlan compiled,
                       backend::lower({&bucket, 1}, options, diagnostics));
  EXPECT_TRUE(validate(compiled.plan).isOk());
  return std::move(compiled.plan);
}

constexpr const char *kQuickGelu =
    "%0 = cgc.library_op([%x]) {op=\"example.quick_gelu\"} : f32[2,4]\noutput %0";

TEST(LibraryOpLowering, IsACallAndThePlanNamesTheLibrary) {
  for (DeviceKind target : {DeviceKind::Cpu, DeviceKind::Cuda}) {
    const auto plan = lowered(kQuickGelu, target, {exampleOps()});
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    const Bucket &bucket = plan->entries[0].buckets[0];
    ASSERT_EQ(bucket.records.size(), 1u);
    EXPECT_EQ(recordName(bucket.records[0]), "libcgc_test_ops.so.example.quick_gelu");
    ASSERT_EQ(plan->opLibraries.size(), 1u);
    EXPECT_EQ(plan->opLibraries[0], (*OpLibrary::open(exampleOps()))->id());
  }
}

TEST(LibraryOpLowering, StridedInputsAreCopied) {
  const auto plan = lowered("%0 = aten.transpose(%x) {dim0=0, dim1=1} : f32[4,2][1,4]\n"
                            "%1 = cgc.library_op([%0]) {op=\"example.quick_gelu\"} : f32[4,2]\n"
                            "output %1",
                            DeviceKind::Cpu, {exampleOps()});
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->entries[0].buckets[0].records.size(), 2u);
}

TEST(LibraryOpLowering, ALibraryThatNothingCallsIsNotNamed) {
  const auto plan =
      lowered("%0 = aten.relu(%x) : f32[2,4]\noutput %0", DeviceKind::Cpu, {exampleOps()});
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_TRUE(plan->opLibraries.empty());
}

TEST(LibraryOpLowering, RefusalsNameOpLibraryAndOption) {
  EXPECT_THAT(lowered(kQuickGelu, DeviceKind::Cpu, {}).status().message(),
              HasSubstr("no op library has op 'example.quick_gelu': name the one that has with "
                        "--op-library"));
  EXPECT_THAT(lowered("%0 = cgc.library_op([%i]) {op=\"example.quick_gelu\"} : i64[2,4]\noutput %0",
                      DeviceKind::Cuda, {exampleOps()})
                  .status()
                  .message(),
              HasSubstr("op 'example.quick_gelu' of 'libcgc_test_ops.so' refuses: it takes f32"));
  for (auto [op, target, other] : {std::tuple("test.host", DeviceKind::Cuda, "cpu"),
                                   std::tuple("test.device", DeviceKind::Cpu, "cuda")})
    EXPECT_THAT(
        lowered("%0 = cgc.library_op([%x]) {op=\"" + std::string(op) + "\"} : f32[2,4]\noutput %0",
                target, {builtLibrary("libcgc_test_partial_ops.so")})
            .status()
            .message(),
        HasSubstr("op '" + std::string(op) +
                  "' of 'libcgc_test_partial_ops.so' has no implementation for target " +
                  std::string(deviceName(target)) + "; compile for --target " + other));
  const TempFolder folder;
  const std::string copy = folder / "copy.so";
  std::filesystem::copy_file(exampleOps(), copy);
  EXPECT_THAT(lowered(kQuickGelu, DeviceKind::Cpu, {exampleOps(), copy}).status().message(),
              HasSubstr("op 'example.quick_gelu' is in two op libraries, '"));
}

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
