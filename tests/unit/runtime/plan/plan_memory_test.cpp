// Tests of workspaceBytes() and planMemory(): which workspaces are in use at the same time.
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/plan_memory.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gtest/gtest.h>

namespace cgc::test {
namespace {

/// A bucket of GEMMs, each with its branch and the size of its workspace.
Bucket gemms(const std::vector<std::pair<uint32_t, int64_t>> &branchesAndBytes) {
  Bucket bucket;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {2, 3}),
                    dense(BufferKind::Weight, 0, 0, DType::F32, {4, 3}),
                    dense(BufferKind::Output, 0, 0, DType::F32, {2, 4})};
  for (const auto &[branch, bytes] : branchesAndBytes) {
    const TensorId workspace = id(uint32_t(bucket.tensors.size()));
    bucket.tensors.push_back(
        dense(BufferKind::Arena, 0, bucket.arenaBytes, DType::U8, {int64_t(bytes)}));
    bucket.arenaBytes += 1024;
    bucket.records.push_back(
        {libraryCall({.x = id(0), .weight = id(1), .d = id(2), .workspace = workspace}),
         kNoLocation, branch});
  }
  return bucket;
}

TEST(PlanMemory, GemmsOfOneBranchTakeTurns) {
  EXPECT_EQ(workspaceBytes(gemms({})), 0u);
  EXPECT_EQ(workspaceBytes(gemms({{0, 100}, {0, 300}, {0, 200}})), 300u);
  EXPECT_EQ(workspaceBytes(gemms({{1, 100}, {1, 300}, {1, 200}})), 300u);
}

TEST(PlanMemory, BranchesNeedTheirWorkspacesTogether) {
  EXPECT_EQ(workspaceBytes(gemms({{1, 100}, {2, 300}, {1, 200}})), 500u);
  // A record of branch 0 runs alone, and ends the region.
  EXPECT_EQ(workspaceBytes(gemms({{1, 100}, {0, 350}, {2, 300}})), 350u);
  EXPECT_EQ(workspaceBytes(gemms({{1, 200}, {2, 100}, {0, 250}, {1, 40}, {2, 250}})), 300u);
}

TEST(PlanMemory, OtherRecordsHaveNoWorkspace) {
  for (const Entry &entry : cudaSamplePlan().plan.entries)
    for (const Bucket &bucket : entry.buckets)
      EXPECT_EQ(workspaceBytes(bucket), 0u);
}

TEST(PlanMemory, TheBucketsOfAContextShareTheLargestWorkspace) {
  PlanData plan;
  plan.entries = {{"a", {gemms({{0, 100}}), gemms({{0, 300}})}}, {"b", {gemms({{0, 200}})}}};
  EXPECT_EQ(planMemory(plan).workspace, 300u);
  EXPECT_EQ(planMemory(plan, /*separateBuffers=*/true).workspace, 600u);
}

} // namespace
} // namespace cgc::test
