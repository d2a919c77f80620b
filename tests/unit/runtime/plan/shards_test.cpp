// Shards: in the file, in the listing, on the ranks, and among the invariants.
#include "runtime/plan/shards.h"

#include "runtime/plan/plan_memory.h"
#include "tests/unit/runtime/sharded_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SamplePlan shardedPlan() {
  SamplePlan sample = trainingPlan(DeviceKind::Cuda);
  shardMoments(sample, 2);
  return sample;
}

TEST(Shards, SurviveTheFile) {
  const SamplePlan sample = shardedPlan();
  const Result<Plan> plan = throughAFile(sample);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->data().states, sample.plan.states);
  EXPECT_EQ(plan->data().states[2].shard, 0u);
  EXPECT_EQ(plan->data().states[0].shard, std::nullopt);
  EXPECT_EQ(plan->data().entries, sample.plan.entries);
  const std::string text = toText(plan->data());
  EXPECT_THAT(text, HasSubstr("state 2 \"w:exp_avg\" optimizer f32[4] = zeros shard=0\n"));
  EXPECT_THAT(text, HasSubstr("t3 = nccl.broadcast(t3) ints=[0, 0, 0] branch=5\n"));
}

TEST(Shards, GoToTheRankWithTheFewestBytes) {
  PlanData plan;
  const auto add = [&](int64_t elements, std::optional<uint32_t> shard) {
    plan.states.push_back({.name = "s", .dtype = DType::U8, .sizes = {elements}, .shard = shard});
  };
  add(1000, std::nullopt);
  for (const auto &[shard, elements] :
       {std::pair(0u, 30), {1u, 30}, {2u, 50}, {3u, 10}, {4u, 15}, {4u, 15}})
    add(elements, shard);
  EXPECT_THAT(shardOwners(plan, 1), ElementsAre(0, 0, 0, 0, 0));
  // 50 | 30, then 30 to 50 | 60, then 30 to 80 | 60, then 10 to 80 | 70.
  EXPECT_THAT(shardOwners(plan, 2), ElementsAre(1, 1, 0, 1, 0));
  EXPECT_THAT(shardOwners(plan, 3), ElementsAre(1, 2, 0, 2, 1));
  EXPECT_THAT(shardOwners(plan, 9), ElementsAre(1, 2, 0, 4, 3));
  EXPECT_THAT(shardOwners(samplePlan().plan, 3), ElementsAre());
  EXPECT_THAT(heldStates(plan, shardOwners(plan, 2), 0),
              ElementsAre(true, false, false, true, false, true, true));
}

TEST(Shards, OfOtherRanksTakeNoMemory) {
  const PlanData plan = shardedPlan().plan;
  const std::vector<int> owners = shardOwners(plan, 2);
  EXPECT_THAT(owners, ElementsAre(0, 1));
  const uint64_t all = stateOffsets(plan).back();
  EXPECT_EQ(all, planMemory(plan).states);
  EXPECT_EQ(all, 6 * 256u + 16);
  EXPECT_EQ(stateOffsets(plan, heldStates(plan, owners, 0)).back(), all - 256);
  EXPECT_EQ(stateOffsets(plan, heldStates(plan, owners, 1)).back(), all - 256);
  EXPECT_EQ(stateOffsets(plan, heldStates(plan, shardOwners(plan, 1), 0)).back(), all);
}

struct ShardViolation {
  const char *name;
  std::function<void(PlanData &, std::vector<LaunchRecord> &)> breakIt;
  const char *message;
};
void PrintTo(const ShardViolation &violation, std::ostream *os) {
  *os << violation.name;
}

class ShardInvariants : public testing::TestWithParam<ShardViolation> {};

TEST_P(ShardInvariants, AreChecked) {
  PlanData plan = shardedPlan().plan;
  ASSERT_TRUE(validate(plan).isOk()) << validate(plan).message();
  GetParam().breakIt(plan, plan.entries[0].buckets[0].records);
  const Status status = validate(plan);
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

/// The position of a record of the step: momentum, descend and broadcast of w are 3 to 5, those of
/// w1 are 6 to 8.
AtenCall &atenCall(std::vector<LaunchRecord> &records, size_t i) {
  return std::get<AtenCall>(records[i].op);
}
LibraryCall &libraryCallOf(std::vector<LaunchRecord> &records, size_t i) {
  return std::get<LibraryCall>(records[i].op);
}

/// Reduces the gradient, before all updates, to the rank with a shard. Returns the mean.
TensorId reduceToRankOf(uint32_t shard, PlanData &plan) {
  Bucket &step = plan.entries[0].buckets[0];
  step.arenaBytes = 512;
  step.tensors.push_back(dense(BufferKind::Arena, 0, 256, DType::F32, {kTrained}));
  const TensorId mean = id(step.tensors.size() - 1);
  const LibraryCall call = libraryCall({.kind = CollectiveKind::AllReduce,
                                        .reduction = Reduction::Mean,
                                        .operands = {id(1)},
                                        .results = {mean},
                                        .shard = shard});
  step.records.insert(step.records.begin() + 3, {call});
  return mean;
}

INSTANTIATE_TEST_SUITE_P(
    Shards, ShardInvariants,
    testing::Values(
        ShardViolation{"NoSuchShard", [](PlanData &plan, auto &) { plan.states[2].shard = 7; },
                       "state 'w:exp_avg': shard 7 of a plan with 7 states"},
        ShardViolation{"BroadcastOfNoShard",
                       [](PlanData &, auto &records) { libraryCallOf(records, 5).ints[2] = 7; },
                       "there is no shard 7"},
        ShardViolation{
            "ShardOfAGather",
            [](PlanData &, auto &records) { libraryCallOf(records, 5).function = "all_gather"; },
            "only all_reduce and broadcast have a shard"},
        ShardViolation{"TwoShards",
                       [](PlanData &, auto &records) {
                         atenCall(records, 6).args[1] = atenCall(records, 4).args[1];
                       },
                       "it uses states of the shards 1 and 0"},
        ShardViolation{"DividedStateIsSent",
                       [](PlanData &, auto &records) {
                         LibraryCall &call = libraryCallOf(records, 5);
                         call.reads =
                             call.writes = {std::get<TensorId>(atenCall(records, 4).args[1])};
                       },
                       "a collective uses state 'w:exp_avg' of shard 0, which one rank holds"},
        ShardViolation{"NothingSendsTheParameter",
                       [](PlanData &, auto &records) { records.erase(records.begin() + 5); },
                       "records of shard 0 write state 'w', and no broadcast sends it"},
        ShardViolation{"AnotherShardSendsTheParameter",
                       [](PlanData &, auto &records) { libraryCallOf(records, 5).ints[2] = 1; },
                       "it uses state 'w', whose value only the rank with shard 0 has"},
        ShardViolation{"ParameterIsReadBeforeItIsSent",
                       [](PlanData &, auto &records) {
                         records.insert(records.begin() + 5, {Memcpy{id(3), id(1)}});
                       },
                       "it uses state 'w', whose value only the rank with shard 0 has"},
        ShardViolation{"ArenaOfOneRankIsReadByOthers",
                       [](PlanData &plan, auto &records) {
                         // The new w goes to the arena, and the count reads it from there.
                         Bucket &step = plan.entries[0].buckets[0];
                         step.arenaBytes = 512;
                         step.tensors.push_back(
                             dense(BufferKind::Arena, 0, 256, DType::F32, {kTrained}));
                         const TensorId added = id(step.tensors.size() - 1);
                         atenCall(records, 4).outputs = {added};
                         records.insert(records.begin() + 5, {Memcpy{added, id(3)}});
                         records.erase(records.begin() + 6);
                       },
                       "which no earlier record has written"},
        ShardViolation{"ReductionToOneRankIsReadByOthers",
                       [](PlanData &plan, auto &records) {
                         const TensorId mean = reduceToRankOf(0, plan);
                         records.insert(records.begin() + 4, {Memcpy{mean, id(4)}});
                       },
                       "which no earlier record has written"},
        ShardViolation{"ReductionToOneRankIsReadByAnother",
                       [](PlanData &plan, auto &records) {
                         const TensorId mean = reduceToRankOf(0, plan);
                         atenCall(records, 7).args[1] = mean;
                       },
                       "which no earlier record has written"},
        ShardViolation{"ReductionOfWhatOneRankHas",
                       [](PlanData &plan, auto &records) {
                         const TensorId mean = reduceToRankOf(0, plan);
                         records.insert(records.begin() + 4, records[3]);
                         libraryCallOf(records, 4).reads = {mean};
                         libraryCallOf(records, 4).writes = {id(1)};
                       },
                       "which no earlier record has written"},
        ShardViolation{"ReductionInPlaceIsReadByAnother",
                       [](PlanData &plan, auto &records) {
                         reduceToRankOf(0, plan);
                         libraryCallOf(records, 3).writes = {id(1)};
                       },
                       "which no earlier record has written"},
        ShardViolation{"ReductionOfAStateThatOneRankHas",
                       [](PlanData &plan, auto &records) {
                         reduceToRankOf(0, plan);
                         libraryCallOf(records, 3).reads = {id(3)};
                         std::rotate(records.begin() + 3, records.begin() + 4, records.begin() + 6);
                       },
                       "it uses state 'w', whose value only the rank with shard 0 has"}),
    [](const auto &info) { return std::string(info.param.name); });

/// A mean that is reduced to one rank is there for the records of its shards.
TEST(Shards, AReductionToOneRankIsReadThere) {
  PlanData plan = shardedPlan().plan;
  const TensorId mean = reduceToRankOf(1, plan);
  std::vector<LaunchRecord> &records = plan.entries[0].buckets[0].records;
  atenCall(records, 7).args[1] = mean;
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  EXPECT_THAT(toText(plan), HasSubstr("t10 = nccl.all_reduce(t1) ints=[1, 0, 1]"));
}

/// A value in the arena that is sent is there on all ranks.
TEST(Shards, AValueInTheArenaMayBeSent) {
  PlanData plan = shardedPlan().plan;
  Bucket &step = plan.entries[0].buckets[0];
  step.arenaBytes = 512;
  step.tensors.push_back(dense(BufferKind::Arena, 0, 256, DType::F32, {kTrained}));
  const TensorId added = id(step.tensors.size() - 1);
  atenCall(step.records, 4).outputs = {added};
  step.records[5] = sent(added, 0);
  step.records.insert(step.records.begin() + 6, {Memcpy{added, id(3)}});
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

} // namespace
} // namespace cgc::test
