// CollectiveCall: conversion to a record and back, every way in which a record is no collective,
// and the branch of collectives.
#include "runtime/plan/branches.h"
#include "runtime/plan/collective_call.h"
#include "runtime/plan/plan_file.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Tensors of which collectives are made: 0 and 1, f32[4,3]; 2, f32[8,3]; 3, i64[4,3]; 4, a part of
/// 1; 5, f32[4,3] with strided rows; 6, bool[4,3]; 7, f32[].
std::vector<TensorRef> tensors() {
  return {dense(BufferKind::Arena, 0, 0, DType::F32, {4, 3}),
          dense(BufferKind::Arena, 0, 256, DType::F32, {4, 3}),
          dense(BufferKind::Arena, 0, 512, DType::F32, {8, 3}),
          dense(BufferKind::Arena, 0, 1024, DType::I64, {4, 3}),
          dense(BufferKind::Arena, 0, 256 + 12, DType::F32, {4, 3}),
          {{BufferKind::Arena, 0, 2048}, DType::F32, {4, 3}, {4, 1}},
          dense(BufferKind::Arena, 0, 4096, DType::Bool, {4, 3}),
          dense(BufferKind::Arena, 0, 4608, DType::F32, {})};
}

CollectiveCall call(CollectiveKind kind, Reduction reduction, int64_t ranks,
                    std::vector<uint32_t> operands, std::vector<uint32_t> results) {
  CollectiveCall made{kind, reduction, ranks, {}, {}};
  for (const uint32_t operand : operands)
    made.operands.push_back(id(operand));
  for (const uint32_t result : results)
    made.results.push_back(id(result));
  return made;
}

constexpr auto kAllReduce = CollectiveKind::AllReduce, kAllGather = CollectiveKind::AllGather,
               kReduceScatter = CollectiveKind::ReduceScatter,
               kBroadcast = CollectiveKind::Broadcast;

TEST(Collective, ComesBackFromItsRecord) {
  CollectiveCall toOne = call(kAllReduce, Reduction::Mean, 0, {0, 1}, {0, 1});
  toOne.shard = 3;
  for (const CollectiveCall &made : {toOne, call(kAllReduce, Reduction::Mean, 0, {0, 1}, {0, 1}),
                                     call(kAllReduce, Reduction::Max, 0, {3}, {3}),
                                     call(kAllReduce, Reduction::Sum, 0, {0}, {1}),
                                     call(kAllGather, Reduction::Sum, 2, {0}, {2}),
                                     call(kReduceScatter, Reduction::Mean, 2, {2}, {1}),
                                     call(kBroadcast, Reduction::Sum, 0, {6, 7}, {6, 7})}) {
    const LibraryCall record = libraryCall(made);
    EXPECT_TRUE(isCollective(record));
    EXPECT_EQ(record.function, collectiveName(made.kind));
    const Result<CollectiveCall> back = collectiveCall(record, tensors());
    ASSERT_TRUE(back.isOk()) << back.status().message();
    EXPECT_EQ(libraryCall(*back), record);
    EXPECT_EQ(back->kind, made.kind);
    EXPECT_EQ(back->ranks, made.ranks);
    EXPECT_EQ(back->shard, made.shard);
  }
  EXPECT_FALSE(isCollective(LibraryCall{"nccl", "all_to_all", {}, {}, {}, {}, {}}));
  EXPECT_FALSE(isCollective(LibraryCall{"acme", "all_reduce", {}, {}, {}, {}, {}}));
}

struct Refusal {
  const char *name;
  CollectiveCall call;
  const char *why;
};
class RefusedCollective : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedCollective, SaysWhy) {
  const auto refused = collectiveCall(libraryCall(GetParam().call), tensors());
  EXPECT_EQ(refused.status().code(), Code::InvalidFile);
  EXPECT_THAT(refused.status().message(), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedCollective,
    testing::Values(
        Refusal{"NoOperands", call(kAllReduce, Reduction::Sum, 0, {}, {}), "number of arguments"},
        Refusal{"FewerResults", call(kAllReduce, Reduction::Sum, 0, {0, 1}, {0}),
                "number of arguments"},
        Refusal{"UnknownReduction", call(kAllReduce, Reduction(3), 0, {0}, {0}),
                "no such reduction"},
        Refusal{"GatherWithReduction", call(kAllGather, Reduction::Max, 2, {0}, {2}),
                "only all_reduce"},
        Refusal{"GatherOfNoRanks", call(kAllGather, Reduction::Sum, 0, {0}, {2}),
                "number of ranks"},
        Refusal{"ReduceOfRanks", call(kAllReduce, Reduction::Sum, 2, {0}, {0}), "number of ranks"},
        Refusal{"AbsentOperand",
                CollectiveCall{kAllReduce, Reduction::Sum, 0, {kNoTensor}, {id(0)}}, "absent"},
        Refusal{"OtherDType", call(kAllReduce, Reduction::Sum, 0, {0}, {3}), "element type"},
        Refusal{"SumOfBool", call(kAllReduce, Reduction::Sum, 0, {6}, {6}), "element type"},
        Refusal{"MeanOfIntegers", call(kAllReduce, Reduction::Mean, 0, {3}, {3}), "floating"},
        Refusal{"Strided", call(kAllReduce, Reduction::Sum, 0, {5}, {5}), "dense"},
        Refusal{"OtherSizes", call(kAllReduce, Reduction::Sum, 0, {0}, {2}), "sizes"},
        Refusal{"GatherOfThree", call(kAllGather, Reduction::Sum, 3, {0}, {2}), "sizes"},
        Refusal{"GatherOfANumber", call(kAllGather, Reduction::Sum, 1, {7}, {7}), "sizes"},
        Refusal{"ScatterToTheWhole", call(kReduceScatter, Reduction::Sum, 2, {2}, {2}), "sizes"},
        Refusal{"OverlappingResults", call(kAllReduce, Reduction::Sum, 0, {0, 0}, {1, 4}),
                "two results"},
        Refusal{"PartOfTheOperand", call(kAllReduce, Reduction::Sum, 0, {1}, {4}),
                "overlaps an operand"},
        Refusal{"GatherInPlace", call(kAllGather, Reduction::Sum, 1, {0}, {0}),
                "overlaps an operand"},
        Refusal{"AnotherOperand", call(kAllReduce, Reduction::Sum, 0, {0, 1}, {1, 2}), "sizes"},
        Refusal{"Crossed", call(kAllReduce, Reduction::Sum, 0, {0, 1}, {1, 0}),
                "overlaps an operand"}),
    [](const auto &info) { return info.param.name; });

/// A memset of the arena, an all-reduce of it beside other records, and a copy to an output.
SamplePlan plan() {
  Bucket bucket;
  bucket.arenaBytes = 8192;
  bucket.outputs = {{"y", DType::F32, {4, 3}}};
  bucket.tensors = tensors();
  bucket.tensors.push_back(dense(BufferKind::Output, 0, 0, DType::F32, {4, 3}));
  bucket.records = {
      {Memset{id(0), 1}},
      {libraryCall(call(kAllReduce, Reduction::Sum, 0, {0}, {0})), kNoLocation, kCollectiveBranch},
      {Memcpy{id(0), id(8)}}};
  SamplePlan sample;
  sample.plan.target = DeviceKind::Cuda;
  sample.plan.producer = "test";
  sample.plan.entries = {{.name = "main", .buckets = {bucket}}};
  return sample;
}

TEST(DetachedBranches, AreForCollectivesAndUpdates) {
  SamplePlan sample = plan();
  EXPECT_TRUE(validate(sample.plan).isOk()) << validate(sample.plan).message();
  std::vector<LaunchRecord> &records = sample.plan.entries[0].buckets[0].records;
  records[0].branch = kCollectiveBranch;
  EXPECT_THAT(validate(sample.plan).message(), HasSubstr("the largest is 4, but for collectives"));
  records[0].branch = kUpdateBranch;
  EXPECT_THAT(validate(sample.plan).message(), HasSubstr("kernels and copies, in branch 6"));
  records[0].branch = 0;
  records[2].branch = kUpdateBranch;
  EXPECT_TRUE(validate(sample.plan).isOk()) << validate(sample.plan).message();
  records[2].branch = kUpdateBranch + 1;
  EXPECT_FALSE(validate(sample.plan).isOk());
  records[2].branch = 0;
  records[1].branch = kUpdateBranch;
  EXPECT_FALSE(validate(sample.plan).isOk());
  sample.plan.target = DeviceKind::Cpu;
  records[1].branch = kCollectiveBranch;
  EXPECT_THAT(validate(sample.plan).message(), HasSubstr("target cuda"));
}

TEST(DetachedBranches, HaveALimit) {
  SamplePlan sample = plan();
  std::vector<LaunchRecord> &records = sample.plan.entries[0].buckets[0].records;
  LaunchRecord copy = records[2];
  copy.branch = kUpdateBranch;
  records.insert(records.end(), kMostDetached, copy);
  EXPECT_TRUE(validate(sample.plan).isOk()) << validate(sample.plan).message();
  records.push_back(copy);
  EXPECT_THAT(validate(sample.plan).message(), HasSubstr("more than 4096 records"));
}

TEST(DetachedBranches, AreInNoRegion) {
  std::vector<LaunchRecord> records(7);
  records[1].branch = records[3].branch = 2;
  records[2].branch = records[5].branch = kCollectiveBranch;
  records[6].branch = kUpdateBranch;
  EXPECT_THAT(parallelRegions(records), ElementsAre(ParallelRegion{1, 4}));
  Bucket bucket;
  bucket.records = records;
  EXPECT_EQ(largestBranch(bucket), 2u);
  EXPECT_EQ(detachedRecords(bucket), (DetachedCounts{2, 1}));
}

} // namespace
} // namespace cgc::test
