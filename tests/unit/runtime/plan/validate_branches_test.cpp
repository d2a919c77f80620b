// checkBranches(): records that may run at the same time must not use memory that one of them
// writes. Regions by hand, and random ones against the definition.
#include "runtime/plan/branches.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/validate_branches.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two branches of a memset and a memcpy each, from the arena to an output, between a memset and a
/// memcpy of branch 0.
SamplePlan branchedPlan() {
  Bucket bucket;
  bucket.arenaBytes = 1024;
  for (uint32_t i = 0; i < 3; ++i) {
    bucket.outputs.push_back({"y" + std::to_string(i), DType::U8, {16}});
    bucket.tensors.push_back(dense(BufferKind::Output, i, 0, DType::U8, {16}));
    bucket.tensors.push_back(dense(BufferKind::Arena, 0, 256 * i, DType::U8, {16}));
  }
  bucket.records = {{Memset{id(5), 9}},
                    {Memset{id(1), 1}, kNoLocation, 1},
                    {Memset{id(3), 2}, kNoLocation, 2},
                    {Memcpy{id(1), id(0)}, kNoLocation, 1},
                    {Memcpy{id(3), id(2)}, kNoLocation, 2},
                    {Memcpy{id(5), id(4)}}};
  SamplePlan sample;
  sample.plan.producer = "test";
  sample.plan.entries = {{.name = "main", .buckets = {bucket}}};
  return sample;
}

Status validated(const std::function<void(Bucket &)> &change) {
  SamplePlan sample = branchedPlan();
  change(sample.plan.entries[0].buckets[0]);
  return validate(sample.plan);
}

TEST(Branches, RegionsLieBetweenRecordsOfBranch0) {
  const Bucket bucket = branchedPlan().plan.entries[0].buckets[0];
  EXPECT_THAT(parallelRegions(bucket.records), ElementsAre(ParallelRegion{1, 5}));
  EXPECT_EQ(largestBranch(bucket), 2u);
  std::vector<LaunchRecord> records(7);
  for (size_t i : {0, 2, 3, 6})
    records[i].branch = 1;
  EXPECT_THAT(parallelRegions(records),
              ElementsAre(ParallelRegion{0, 1}, ParallelRegion{2, 4}, ParallelRegion{6, 7}));
  EXPECT_TRUE(parallelRegions({}).empty());
}

TEST(Branches, AreNotInBucketsWithHostCalls) {
  const auto callHost = [](Bucket &bucket) {
    bucket.records[0].op = HostCall{"module", "forward", {}, {id(5)}};
  };
  EXPECT_THAT(validated(callHost).message(), HasSubstr("calls functions of the host"));
  EXPECT_TRUE(validated([&](Bucket &bucket) {
                callHost(bucket);
                for (LaunchRecord &record : bucket.records)
                  record.branch = 0;
              }).isOk());
}

TEST(Branches, AreInTheFileAndInTheText) {
  const SamplePlan sample = branchedPlan();
  const TempFolder folder;
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), folder / "p").isOk());
  const Result<Plan> plan = Plan::load(folder / "p");
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->data(), sample.plan);
  EXPECT_THAT(toText(plan->data()), HasSubstr("memcpy(t3) branch=2\n"));
}

TEST(Branches, MayReadTheSameMemory) {
  EXPECT_TRUE(validated([](Bucket &) {}).isOk());
  // Both copy what was written before the region.
  EXPECT_TRUE(validated([](Bucket &b) {
                std::get<Memcpy>(b.records[3].op).source = id(5);
                std::get<Memcpy>(b.records[4].op).source = id(5);
              }).isOk());
}

TEST(Branches, MayNotUseMemoryThatAnotherWrites) {
  const auto refusal = [](const std::function<void(Bucket &)> &change) {
    const Status status = validated(change);
    EXPECT_EQ(status.code(), Code::InvalidFile);
    return status.message();
  };
  const auto conflict = [](int a, int b) {
    return AllOf(HasSubstr("entry 'main', bucket 0: records " + std::to_string(a) + " ("),
                 HasSubstr(" and " + std::to_string(b) + " ("),
                 HasSubstr("are in different branches and use the same memory"));
  };
  // A write and a write.
  EXPECT_THAT(refusal([](Bucket &b) { b.tensors[3].slot.offset = 0; }), conflict(1, 2));
  // One byte is enough.
  EXPECT_TRUE(validated([](Bucket &b) { b.tensors[3].slot.offset = 16; }).isOk());
  EXPECT_THAT(refusal([](Bucket &b) { b.tensors[3].slot.offset = 15; }), conflict(1, 2));
  // A write and a read.
  EXPECT_THAT(refusal([](Bucket &b) { std::get<Memcpy>(b.records[4].op).source = id(1); }),
              conflict(1, 4));
  // A write of what the other branch has read.
  EXPECT_THAT(refusal([](Bucket &b) {
                b.records[1].branch = b.records[2].branch = 0;
                b.records.insert(b.records.begin() + 4, {Memset{id(1), 3}, kNoLocation, 2});
              }),
              conflict(3, 4));
  // Outputs.
  EXPECT_THAT(refusal([](Bucket &b) {
                b.records.insert(b.records.begin() + 5, {Memset{id(0), 3}, kNoLocation, 2});
              }),
              conflict(3, 5));
  // A dependency on a record that was moved to another branch.
  EXPECT_THAT(refusal([](Bucket &b) { b.records[3].branch = 4; }), conflict(1, 3));
  // Between two regions there is an order.
  EXPECT_TRUE(validated([](Bucket &b) {
                b.records[2].branch = 0;
                b.records[4].branch = 1;
                b.tensors[3].slot.offset = 64;
              }).isOk());
}

TEST(Branches, AreAtMostFour) {
  EXPECT_THAT(validated([](Bucket &b) { b.records[3].branch = 5; }).message(),
              HasSubstr("is in branch 5; the largest is 4"));
  EXPECT_EQ(validated([](Bucket &b) { b.records[3].branch = UINT32_MAX; }).code(),
            Code::InvalidFile);
}

/// Random memsets and memcpys over a small arena. The check finds a conflict exactly where the
/// definition has one.
TEST(Branches, RandomRegionsAgreeWithTheDefinition) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Bucket bucket;
    bucket.arenaBytes = 1000;
    const uint32_t space = 20 + below(400);
    for (uint32_t i = 0; i < 6; ++i)
      bucket.tensors.push_back(dense(BufferKind::Arena, 0, below(space), DType::U8, {below(12)}));
    for (uint32_t i = 0, n = 2 + below(8); i < n; ++i)
      bucket.records.push_back(
          {below(2) ? decltype(LaunchRecord::op)(Memset{id(below(6)), 0})
                    : decltype(LaunchRecord::op)(Memcpy{id(below(6)), id(below(6))}),
           kNoLocation, below(4)});
    bool conflict = false;
    const auto meet = [&](TensorId a, TensorId b) {
      const TensorRef &x = bucket.tensors[uint32_t(a)], &y = bucket.tensors[uint32_t(b)];
      return x.slot.offset < y.slot.offset + y.sizes[0] &&
             y.slot.offset < x.slot.offset + x.sizes[0] && x.sizes[0] > 0 && y.sizes[0] > 0;
    };
    const auto &records = bucket.records;
    for (size_t i = 0; i < records.size(); ++i)
      for (size_t j = i + 1; j < records.size() && records[i].branch && records[j].branch; ++j) {
        if (records[i].branch == records[j].branch)
          continue;
        for (TensorId a : recordWrites(records[i])) {
          for (TensorId b : recordWrites(records[j]))
            conflict |= meet(a, b);
          for (TensorId b : recordReads(records[j]))
            conflict |= meet(a, b);
        }
        for (TensorId a : recordReads(records[i]))
          for (TensorId b : recordWrites(records[j]))
            conflict |= meet(a, b);
      }
    EXPECT_EQ(checkBranches(bucket).isOk(), !conflict) << "round " << round;
    refused += conflict;
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 2500);
}

} // namespace
} // namespace cgc::test
