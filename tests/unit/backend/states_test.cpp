// Tests of lower(): states, and which of them are written in place.
#include "runtime/plan/branches.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;

/// Lowers the graph @step of a module with the states w and v, both f32[4].
Result<CompiledPlan> lowerStep(const std::string &lines, LowerOptions options = DeviceKind::Cpu) {
  return lowerAll(
      *parse("module @m {\n  state @w : f32[4]\n  state @v role=\"optimizer\" : f32[4]\n"
             "  graph @step(%x: f32[4]) {\n" +
             lines + "\n  }\n}"),
      options);
}
const Bucket &bucketOf(const Result<CompiledPlan> &plan) {
  return plan->plan.entries[0].buckets[0];
}
/// The state that record `i` writes first; -1 if it writes something else.
int stateWritten(const Bucket &bucket, size_t i) {
  const Slot slot = written(bucket, i);
  return slot.buffer == BufferKind::State ? int(slot.index) : -1;
}

TEST(LowerStates, AreWrittenInPlaceWhereNothingReadsTheOldValue) {
  const auto plan = lowerStep(R"(    %0 = aten.neg(%x) : f32[4]
    output %x, state @w = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), 0);
  ASSERT_EQ(plan->plan.states.size(), 1u);
  EXPECT_EQ(plan->plan.states[0].name, "w");
}

TEST(LowerStates, BeginWithWeightsOfTheModel) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = aten.neg(%0) : f32[4]
    output %1, state @w = %x)");
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_EQ(plan->plan.weights.size(), 1u);
  EXPECT_EQ(plan->plan.weights[0].name, "w");
  EXPECT_FALSE(plan->plan.weights[0].isComputed);
}

TEST(LowerStates, AreCopiedIfTheRecordReadsThem) {
  // LibTorch's kernels do not say in which order they read and write.
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = aten.neg(%0) : f32[4]
    output %x, state @w = %1)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), -1);
  EXPECT_EQ(stateWritten(bucketOf(plan), 2), 0);
}

TEST(LowerStates, WithTheNameOfACheckpointsNotesAreRefused) {
  const auto module = parse(R"(module @m {
    state @__metadata__ : f32[4]
    graph @step(%x: f32[4]) {
      %0 = get_attr @__metadata__ : f32[4]
      %1 = aten.add(%0, %x) : f32[4]
      output %1
    }
  })");
  ir::Diagnostics diagnostics;
  const EntryBucket bucket{"step", module->graphs().front().get()};
  EXPECT_EQ(lower({&bucket, 1}, DeviceKind::Cpu, diagnostics).status().code(), Code::Unsupported);
  EXPECT_THAT(diagnostics.render(), testing::AllOf(testing::HasSubstr("'__metadata__'"),
                                                   testing::HasSubstr("rename it in the model")));
}

/// A counter, such as the step of an optimizer.
TEST(LowerStates, AKernelThatMayOverwriteWhatItReadsCountsInPlace) {
  const auto plan = lowerAll(*parse(R"(module @m {
    state @n role="control" : i64[]
    graph @step(%x: f32[4]@cuda) {
      %0 = get_attr @n : i64[]@cuda
      %1 = aten.add(%0, 1) : i64[]@cuda
      output %x, state @n = %1
    }
  })"),
                             DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("kernel elementwise_i64", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), 0); // The copy is that of the output.
}

/// Threads would overwrite elements that others read.
TEST(LowerStates, AKernelThatReadsTheStateInAnotherOrderIsCopied) {
  const auto plan = lowerAll(*parse(R"(module @m {
    state @w : f32[4,4]
    graph @step(%x: f32[4]@cuda) {
      %0 = get_attr @w : f32[4,4]@cuda
      %1 = aten.transpose(%0) {dim0=0, dim1=1} : f32[4,4][1,4]@cuda
      %2 = aten.add(%1, %x) : f32[4,4]@cuda
      output %x, state @w = %2
    }
  })"),
                             DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)),
              ElementsAre("kernel elementwise_f32", "memcpy", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), -1);
}

TEST(LowerStates, AreCopiedIfALaterRecordReadsTheOldValue) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = aten.neg(%x) : f32[4]
    %2 = aten.exp(%0) : f32[4]
    output %2, state @w = %1)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "aten::exp.out", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 2), 0);
}

/// The record that writes it would also write behind the state.
TEST(LowerStates, PartOfWhatARecordWritesIsCopied) {
  const auto plan = lowerAll(*parse(R"(module @m {
    state @w : f32[4]
    graph @step(%x: f32[8]) {
      %0 = aten.neg(%x) : f32[8]
      %1 = aten.slice(%0) {start=0, end=4} : f32[4]
      output %x, state @w = %1
    }
  })"),
                             DeviceKind::Cpu);
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), -1);
  EXPECT_EQ(stateWritten(bucketOf(plan), 2), 0);
}

TEST(LowerStates, AnOutputOfTheOldValueIsCopiedFirst) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = aten.neg(%x) : f32[4]
    output %0, state @w = %1)");
  ASSERT_TRUE(plan) << plan.status().message();
  // neg, the copy of the old value to the output, the copy of the new value.
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy", "memcpy"));
  EXPECT_EQ(read(bucketOf(plan), 1).buffer, BufferKind::State);
  EXPECT_EQ(stateWritten(bucketOf(plan), 2), 0);
}

TEST(LowerStates, ANewValueThatIsAnOutputIsCopied) {
  const auto plan = lowerStep(R"(    %0 = aten.neg(%x) : f32[4]
    output %0, state @w = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy"));
  EXPECT_EQ(written(bucketOf(plan), 0).buffer, BufferKind::Output);
  EXPECT_EQ(stateWritten(bucketOf(plan), 1), 0);
}

TEST(LowerStates, OneValueForTwoStatesIsComputedOnce) {
  const auto plan = lowerStep(R"(    %0 = aten.neg(%x) : f32[4]
    output %x, state @w = %0, state @v = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("aten::neg.out", "memcpy", "memcpy"));
  EXPECT_EQ(stateWritten(bucketOf(plan), 0), 0);
  EXPECT_EQ(stateWritten(bucketOf(plan), 2), 1);
}

TEST(LowerStates, TwoStatesAreExchangedThroughTheArena) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = get_attr @v : f32[4]
    output %x, state @w = %1, state @v = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = bucketOf(plan);
  // The output, one old value to the arena, the other one to its new state, the first one to its.
  ASSERT_THAT(recordNames(bucket), ElementsAre("memcpy", "memcpy", "memcpy", "memcpy"));
  const Slot first = read(bucket, 1), second = read(bucket, 2);
  EXPECT_EQ(first.buffer, BufferKind::State);
  EXPECT_EQ(second.buffer, BufferKind::State);
  EXPECT_NE(first, second);
  EXPECT_EQ(written(bucket, 1).buffer, BufferKind::Arena);
  EXPECT_EQ(written(bucket, 2), first);
  EXPECT_EQ(read(bucket, 3), written(bucket, 1));
  EXPECT_EQ(written(bucket, 3), second);
}

TEST(LowerStates, AStateThatKeepsItsValueNeedsNoRecord) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    output %x, state @w = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(bucketOf(plan)), ElementsAre("memcpy"));
}

TEST(LowerStates, AStateTakesTheOldValueOfOneThatIsWritten) {
  const auto plan = lowerStep(R"(    %0 = get_attr @w : f32[4]
    %1 = aten.neg(%x) : f32[4]
    output %x, state @w = %1, state @v = %0)");
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = bucketOf(plan);
  // neg to the arena, the output, the old w to v, the new w.
  ASSERT_EQ(bucket.records.size(), 4u);
  EXPECT_EQ(written(bucket, 0).buffer, BufferKind::Arena);
  EXPECT_EQ(written(bucket, 3), read(bucket, 2));
  EXPECT_EQ(read(bucket, 3), written(bucket, 0));
}

TEST(LowerStates, AreNeverMergedByContent) {
  auto module = parse(R"(module @m {
    state @same1 : f32[4]
    state @same2 : f32[4]
    graph @step(%x: f32[4]) {
      %0 = get_attr @same1 : f32[4]
      %1 = get_attr @same2 : f32[4]
      %2 = aten.add(%0, %1) : f32[4]
      output %2
    }
  })");
  const auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_EQ(plan->plan.states.size(), 2u);
  EXPECT_EQ(plan->plan.weights.size(), 1u); // The first value is.
  EXPECT_EQ(plan->plan.states[0].initial, plan->plan.states[1].initial);
}

/// A record that writes a state in place ends the branches that read its old value.
TEST(LowerStates, BranchesEndWhereAStateIsWritten) {
  const auto chains = [](bool shares) {
    std::string lines = "    %w = get_attr @w : f32[4]\n    %a0 = aten.neg(%x) : f32[4]\n"
                        "    %b0 = aten.neg(%w) : f32[4]\n";
    for (int i = 1; i < 12; ++i)
      for (const std::string chain : {"a", "b"})
        lines += "    %" + chain + std::to_string(i) + " = aten.neg(%" + chain +
                 std::to_string(i - 1) + ") : f32[4]\n";
    lines += shares ? "    output %b11, state @w = %a11" : "    output %b11, state @v = %a11";
    return lowerStep(lines, {DeviceKind::Cuda, Arch::Sm90a});
  };
  const auto apart = chains(false), shared = chains(true);
  ASSERT_TRUE(apart) << apart.status().message();
  ASSERT_TRUE(shared) << shared.status().message();
  // lowerAll() has verified that no branch uses what another one writes.
  const auto branchOfWrite = [](const Bucket &bucket) {
    for (size_t i = 0; i < bucket.records.size(); ++i)
      if (stateWritten(bucket, i) >= 0)
        return int(bucket.records[i].branch);
    return -1;
  };
  EXPECT_GT(branchOfWrite(bucketOf(apart)), 0);
  EXPECT_EQ(branchOfWrite(bucketOf(shared)), 0);
  EXPECT_GT(largestBranch(bucketOf(shared)), 0u);
}

} // namespace
} // namespace cgc::backend
