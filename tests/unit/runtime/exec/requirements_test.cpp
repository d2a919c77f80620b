// Requirements of a plan, derived from its records.
#include "runtime/exec/requirements.h"
#include "runtime/kernels/kernel_table.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::Key;

TEST(Requirements, NameTheRecordsThatLibTorchRuns) {
  PlanData plan = samplePlan().plan; // Entry "fill" has no ATen call.
  // One of two buckets has a second aten::neg: the larger count is reported.
  std::vector<LaunchRecord> &records = plan.entries[0].buckets[0].records;
  records.push_back({records[0].op, LocationId(1)});
  const Requirements needs = requirementsOf(plan);
  ASSERT_EQ(needs.libTorch.size(), 1u);
  EXPECT_EQ(needs.libTorch[0].entry, "main");
  const auto &ops = needs.libTorch[0].ops;
  EXPECT_THAT(ops, ElementsAre(Key("aten::add.Tensor"), Key("aten::neg.out")));
  EXPECT_EQ(ops.at("aten::add.Tensor").records, 1u);
  EXPECT_EQ(ops.at("aten::add.Tensor").location, LocationId(1));
  EXPECT_EQ(ops.at("aten::neg.out").records, 2u);
  EXPECT_EQ(ops.at("aten::neg.out").location, LocationId(0));
  EXPECT_FALSE(needs.gpu);
  EXPECT_FALSE(needs.cublasLt);
}

TEST(Requirements, NameCublasLtOnlyForItsGemms) {
  PlanData plan = samplePlan().plan;
  LibraryCall ofALibrary, gemm;
  ofALibrary.library = "libacme_ops.so";
  gemm.library = "cublaslt";
  gemm.function = "matmul";
  std::vector<LaunchRecord> &records = plan.entries[1].buckets[0].records;
  records.push_back({ofALibrary});
  EXPECT_FALSE(requirementsOf(plan).cublasLt);
  records.push_back({gemm});
  EXPECT_TRUE(requirementsOf(plan).cublasLt);
  records.push_back({ofALibrary});
  EXPECT_TRUE(requirementsOf(plan).cublasLt);
}

TEST(Requirements, HaveTheTraitsOfAllKernels) {
  KernelLaunch known, unknown;
  known.kernel = "layer_norm_f32";
  unknown.kernel = "no_such_kernel";
  PlanData plan;
  plan.target = DeviceKind::Cuda;
  plan.entries = {{"a", {Bucket{}}}, {"b", {Bucket{}}}};
  EXPECT_TRUE(requirementsOf(plan).gpu);
  EXPECT_EQ(requirementsOf(plan).kernelTraits, 0u);
  plan.entries[0].buckets[0].records = {{unknown}};
  EXPECT_EQ(requirementsOf(plan).kernelTraits, 0u);
  plan.entries[1].buckets[0].records = {{Memset{}}, {known}};
  EXPECT_EQ(requirementsOf(plan).kernelTraits, unsigned(kProgrammaticLaunch));
  // A kernel for sm_90a, with kernels for any GPU after it.
  KernelLaunch hopper, copy;
  hopper.kernel = "attention_f16_64_hopper";
  copy.kernel = "copy";
  plan.entries[0].buckets[0].records = {{hopper}, {copy}};
  EXPECT_TRUE(requirementsOf(plan).needsSm90a());
  EXPECT_TRUE(requirementsOf(plan).kernelTraits & kProgrammaticLaunch);
}

} // namespace
} // namespace cgc::test
