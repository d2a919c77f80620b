// Which edges are programmatic, and on which GPUs a plan runs: decided without one.
#include "runtime/exec/bind.h"
#include "runtime/exec/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

BoundRecord kernel(bool waits) {
  BoundKernel kernel;
  kernel.waits = waits;
  return {std::move(kernel), ""};
}

TEST(ProgrammaticEdges, AreBetweenKernelsWhoseConsumerWaits) {
  std::vector<BoundRecord> records;
  records.push_back(kernel(true)); // Nothing ahead of it.
  records.push_back(kernel(true));
  records.push_back(kernel(false)); // Would not wait.
  records.push_back(kernel(true));
  records.push_back({BoundMemset{nullptr, 0, 0}, ""});
  records.push_back(kernel(true)); // Behind no kernel of ours.
  records.push_back({BoundAtenCall{}, ""});
  records.push_back(kernel(true));
  records.push_back({BoundMemcpy{nullptr, nullptr, 0}, ""});
  records.push_back(kernel(true));
  records.push_back(kernel(true));
  makeProgrammaticEdges(records);
  std::vector<int> programmatic;
  for (size_t i = 0; i < records.size(); ++i)
    if (const auto *k = std::get_if<BoundKernel>(&records[i].op); k && k->programmatic)
      programmatic.push_back(i);
  EXPECT_THAT(programmatic, ElementsAre(1, 3, 10));
}

TEST(CheckGpu, NamesTheCardAndTheNextStep) {
  const Gpu v100{0, "Tesla V100", 7, 0, 80}, a100{1, "NVIDIA A100", 8, 0, 108},
      h200{0, "NVIDIA H200", 9, 0, 132}, b200{0, "NVIDIA B200", 10, 0, 148};
  for (const Gpu &gpu : {a100, h200, b200})
    EXPECT_TRUE(checkGpu(gpu, kWaits).isOk()) << gpu.name;
  EXPECT_TRUE(checkGpu(h200, kWaits | kHopper).isOk());
  const Status old = checkGpu(v100, 0);
  EXPECT_EQ(old.code(), Code::Device);
  EXPECT_THAT(old.message(), AllOf(HasSubstr("GPU 0 (Tesla V100, sm_70) is older than sm_80"),
                                   HasSubstr("--target cpu")));
  for (const Gpu &gpu : {a100, b200}) {
    const Status status = checkGpu(gpu, kHopper);
    EXPECT_EQ(status.code(), Code::Device);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(gpu.name), HasSubstr("--arch sm_80")));
  }
}

} // namespace
} // namespace cgc::test
