// libcgc_runtime as a deployment links it: the public API is exported, a plan loads and runs, and
// the library needs no LibTorch, LLVM, Python or cuBLAS.
#include "runtime/exec/engine.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <link.h>

#include <cstdlib>
#include <new>

/// The number of allocations that still succeed; negative: all. The library uses this program's
/// operator new.
static long allocationsLeft = -1;

[[gnu::noinline]] void *operator new(size_t bytes) {
  if (allocationsLeft == 0)
    throw std::bad_alloc();
  if (allocationsLeft > 0)
    --allocationsLeft;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}

namespace cgc::test {
namespace {

Status statusOf(const Status &status) {
  return status;
}
template <class T> Status statusOf(const Result<T> &result) {
  return result.status();
}
/// Calls `call` with its n-th allocation failing, for n = 0, 1, ... until it succeeds. Each failure
/// must be reported as OutOfMemory. Returns the number of allocations.
template <class Call> long failEachAllocation(const Call &call) {
  for (long n = 0;; ++n) {
    allocationsLeft = n;
    const auto result = call();
    allocationsLeft = -1;
    if (result.isOk())
      return n;
    const Status status = statusOf(result);
    if (status.code() != Code::OutOfMemory) {
      ADD_FAILURE() << "allocation " << n << ": " << status.message();
      return n;
    }
  }
}

using testing::Each;
using testing::HasSubstr;

TEST(Deployment, LoadsAndRunsAPlan) {
  const TempFolder folder;
  SamplePlan sample = samplePlan();
  sample.plan.entries.erase(sample.plan.entries.begin()); // "fill" needs no provider.
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), folder / "p.cgplan").isOk());
  const Result<Plan> plan = Plan::load(folder / "p.cgplan");
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  const Result<Engine> engine = Engine::create(*plan);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  Result<Context> context = Context::create(*engine);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  std::vector<uint8_t> bytes(4);
  const std::vector<int64_t> sizes = {4};
  const TensorView out{bytes.data(), DType::U8, DeviceKind::Cpu, sizes, {}};
  ASSERT_TRUE(context->run("fill", {}, {&out, 1}).isOk());
  EXPECT_THAT(bytes, Each(7));
}

TEST(Deployment, NoExceptionLeavesItWhenMemoryRunsOut) {
  const TempFolder folder;
  SamplePlan sample = samplePlan();
  sample.plan.entries.erase(sample.plan.entries.begin());
  const std::string path = folder / "p.cgplan";
  const auto weights = sample.weightSpans();
  EXPECT_GT(failEachAllocation([&] { return writePlan(sample.plan, weights, path); }), 10);
  EXPECT_EQ(folder.list(), std::vector<std::string>{"p.cgplan"});
  EXPECT_GT(failEachAllocation([&] { return Plan::load(path); }), 10);
  const Result<Plan> plan = Plan::load(path);
  EXPECT_GT(failEachAllocation([&] { return Engine::create(*plan); }), 0);
  const Result<Engine> engine = Engine::create(*plan);
  EXPECT_GT(failEachAllocation([&] { return Context::create(*engine); }), 3);
}

TEST(Deployment, ErrorsCrossTheLibrary) {
  const Status status = Plan::load("/no/such.cgplan").status();
  EXPECT_EQ(codeName(status.code()), "invalid_file");
  EXPECT_THAT(status.message(), HasSubstr("does not exist"));
}

TEST(Deployment, NeedsNoLibTorchLlvmPythonOrCublas) {
  std::string loaded;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *names) {
        const std::filesystem::path path = info->dlpi_name;
        *static_cast<std::string *>(names) += path.filename().string() + "\n";
        return 0;
      },
      &loaded);
  EXPECT_THAT(loaded, HasSubstr("libcgc_runtime.so"));
  for (const char *name : {"torch", "c10", "LLVM", "python", "cublas"})
    EXPECT_THAT(loaded, testing::Not(HasSubstr(name)));
}

} // namespace
} // namespace cgc::test
