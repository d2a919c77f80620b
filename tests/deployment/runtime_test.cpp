// libcgc_runtime alone, as a deployment links it: the public API is exported, loads and runs a
// plan, and the library needs no LibTorch, LLVM or Python.
#include "runtime/exec/engine.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <link.h>

namespace cgc::test {
namespace {

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

TEST(Deployment, ErrorsCrossTheLibrary) {
  const Status status = Plan::load("/no/such.cgplan").status();
  EXPECT_EQ(codeName(status.code()), "invalid_file");
  EXPECT_THAT(status.message(), HasSubstr("does not exist"));
}

TEST(Deployment, NeedsNoLibTorchLlvmOrPython) {
  std::string loaded;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *names) {
        *static_cast<std::string *>(names) += std::string(info->dlpi_name) + "\n";
        return 0;
      },
      &loaded);
  EXPECT_THAT(loaded, HasSubstr("libcgc_runtime.so"));
  for (const char *name : {"torch", "c10", "LLVM", "python"})
    EXPECT_THAT(loaded, testing::Not(HasSubstr(name)));
}

} // namespace
} // namespace cgc::test
