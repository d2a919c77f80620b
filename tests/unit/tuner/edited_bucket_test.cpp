// EditedBucket: GEMMs of a plan are counted, and replaced by either kind of record and back.
#include "runtime/plan/plan_file.h"
#include "tests/unit/tuner/gemm_chain.h"
#include "tuner/edited_bucket.h"
#include "tuner/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using namespace cgc::tuner;

constexpr int64_t kWorkspaceBytes = 1 << 20;
constexpr const char *kFc1 = "gemm f16 [77,256] x [1024,256], bias, activation 1",
                     *kFc2 = "gemm f16 [77,1024] x [256,1024], bias, residual [77,256]";

PlanData chain(MadeOf made, DType dtype = DType::F16) {
  return gemmChain(dtype, made, [](int, int64_t) { return std::vector<std::byte>(); }).plan;
}

backend::GemmChoice algorithm() {
  return backend::GemmLibraryChoice{std::vector<std::byte>(80, std::byte{7})};
}
backend::GemmChoice tile(int64_t n, int64_t k) {
  return kernelChoices(gemmProblem(DType::F16, n, k)).front();
}

TEST(EditedBucket, CountsGemmsByWhatTheyAre) {
  const EditedBucket tiles(chain(MadeOf::Tiles).entries[0].buckets[0], kWorkspaceBytes);
  EXPECT_EQ(tiles.count(kFc1), 3u);
  EXPECT_EQ(tiles.count(kFc2), 3u);
  EXPECT_EQ(tiles.count("f16"), 0u);
  // With less alignment it is another kind of GEMM, because an algorithm of cuBLASLt may not
  // support it.
  Bucket shifted = chain(MadeOf::Tiles).entries[0].buckets[0];
  shifted.tensors[uint32_t(recordReads(shifted.records[0])[0])].slot.offset += 48;
  const EditedBucket other(shifted, kWorkspaceBytes);
  EXPECT_EQ(other.count(kFc1), 2u);
  EXPECT_EQ(other.count("gemm f16 [77,256] at 16 x [1024,256], bias, activation 1"), 1u);
  const EditedBucket calls(chain(MadeOf::Calls).entries[0].buckets[0], kWorkspaceBytes);
  EXPECT_EQ(calls.count("gemm f16 [77,256] x [1024,256], bias, activation 5"), 3u);
  EXPECT_EQ(calls.count(kFc2), 3u);
}

TEST(EditedBucket, ATileBecomesACallWithAWorkspaceBehindTheArena) {
  PlanData plan = chain(MadeOf::Tiles);
  Bucket &bucket = plan.entries[0].buckets[0];
  const uint64_t arena = bucket.arenaBytes;
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  EXPECT_EQ(edited.count(kFc2), 3u) << "it is the same GEMM";
  const Bucket before = bucket;
  bucket = std::move(edited).take();
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  EXPECT_EQ(bucket.arenaBytes, (arena + 255) / 256 * 256 + kWorkspaceBytes);
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const LaunchRecord &record = bucket.records[i];
    if (i % 2 == 0) {
      EXPECT_EQ(record, before.records[i]) << "another GEMM";
      continue;
    }
    const auto &call = std::get<LibraryCall>(record.op);
    EXPECT_EQ(call.reads, std::get<KernelLaunch>(before.records[i].op).reads);
    EXPECT_EQ(call.algorithm.size(), 80u);
    const TensorRef &workspace = bucket.tensors[uint32_t(call.writes[1])];
    EXPECT_GE(workspace.slot.offset, arena);
    EXPECT_EQ(record.location, before.records[i].location);
  }
}

TEST(EditedBucket, WithoutANewCallTheArenaStaysAsItWas) {
  PlanData plan = chain(MadeOf::Tiles);
  Bucket &bucket = plan.entries[0].buckets[0];
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  edited.setRecords(edited.recordsWith(kFc2, tile(kChainNarrow, kChainWide)));
  const Bucket after = std::move(edited).take();
  EXPECT_EQ(after.arenaBytes, bucket.arenaBytes);
  EXPECT_EQ(after.tensors, bucket.tensors);
  const auto &was = std::get<KernelLaunch>(bucket.records[1].op),
             &is = std::get<KernelLaunch>(after.records[1].op);
  EXPECT_NE(is.kernel, was.kernel);
  EXPECT_EQ(is.reads, was.reads);
  EXPECT_EQ(is.writes, was.writes);
  EXPECT_EQ(is.ints, was.ints);
}

/// Calls of different branches may run at the same time.
TEST(EditedBucket, EachBranchHasAWorkspace) {
  Bucket bucket = chain(MadeOf::Tiles).entries[0].buckets[0];
  ASSERT_EQ(bucket.records.size(), 6u);
  const uint64_t arena = bucket.arenaBytes;
  for (size_t i = 2; i < 6; ++i)
    bucket.records[i].branch = uint32_t(i / 2); // 0, 0, 1, 1, 2, 2
  const auto workspaces = [&](const std::string &description) {
    EditedBucket edited(bucket, kWorkspaceBytes);
    edited.setRecords(edited.recordsWith(description, algorithm()));
    const Bucket after = std::move(edited).take();
    EXPECT_EQ(after.arenaBytes, (arena + 255) / 256 * 256 + 2 * kWorkspaceBytes);
    std::vector<uint64_t> offsets;
    for (const LaunchRecord &record : after.records)
      if (const auto *call = std::get_if<LibraryCall>(&record.op))
        offsets.push_back(after.tensors[uint32_t(call->writes[1])].slot.offset);
    return offsets;
  };
  const std::vector<uint64_t> offsets = workspaces(kFc2);
  ASSERT_EQ(offsets.size(), 3u);
  EXPECT_EQ(offsets[0], offsets[1]) << "branches 0 and 1 never run at the same time";
  EXPECT_EQ(offsets[2], offsets[1] + kWorkspaceBytes);
}

TEST(EditedBucket, ACallKeepsItsOwnWorkspace) {
  PlanData plan = chain(MadeOf::Calls);
  Bucket &bucket = plan.entries[0].buckets[0];
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  const Bucket after = std::move(edited).take();
  EXPECT_EQ(after.arenaBytes, bucket.arenaBytes);
  const auto &was = std::get<LibraryCall>(bucket.records[1].op),
             &is = std::get<LibraryCall>(after.records[1].op);
  EXPECT_EQ(is.writes, was.writes);
  EXPECT_EQ(is.algorithm.size(), 80u);
}

TEST(Tune, RefusesACpuPlan) {
  SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  const Status status = tune(*plan).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("target cpu"));
}

} // namespace
} // namespace cgc::test
