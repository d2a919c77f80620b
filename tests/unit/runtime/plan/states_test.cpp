// States of a plan: in the file, in the listing, in the memory that the plan needs, and among the
// invariants.
#include "runtime/plan/plan_memory.h"
#include "tests/unit/runtime/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlanStates, SurviveTheFile) {
  const SamplePlan sample = trainingPlan(DeviceKind::Cuda);
  const Result<Plan> plan = throughAFile(sample);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->data().states, sample.plan.states);
  EXPECT_EQ(plan->data().entries, sample.plan.entries);
  EXPECT_EQ(plan->data().findState("w:exp_avg"), 2u);
  EXPECT_EQ(plan->data().findState("exp_avg"), std::nullopt);
}

TEST(PlanStates, AreListed) {
  const std::string text = toText(trainingPlan(DeviceKind::Cuda).plan);
  for (const char *part :
       {"state 0 \"w\" parameter f32[4] = weight 0\n", "state 1 \"seen\" buffer f32[4] = zeros\n",
        "state 2 \"w:exp_avg\" optimizer f32[4] = zeros\n",
        "state 3 \"optimizer:step\" control i64[] = zeros\n", "t5: f32[4] @ state 2+0\n",
        "t3 = aten::descend.out(t3, t5, t7)\n"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(PlanStates, TakeTheMemoryOfTheirFirstValues) {
  SamplePlan sample = trainingPlan(DeviceKind::Cuda);
  // Each state is aligned to 256 bytes. Both weights are first values only.
  EXPECT_EQ(planMemory(sample.plan).states, 4 * 256u + 4);
  EXPECT_EQ(planMemory(sample.plan).weights, 0u);
  EXPECT_THAT(weightsThatRecordsRead(sample.plan), ElementsAre(false, false));
  EXPECT_THAT(stateOffsets(sample.plan), ElementsAre(0, 256, 512, 768, 1024, 1028));

  // A weight that a record also reads stays on the device.
  sample.plan.entries[1].buckets[0].tensors[3].slot = {BufferKind::Weight, 0, 0};
  ASSERT_TRUE(validate(sample.plan).isOk()) << validate(sample.plan).message();
  EXPECT_EQ(planMemory(sample.plan).weights, 16u);
  EXPECT_THAT(weightsThatRecordsRead(sample.plan), ElementsAre(true, false));
}

TEST(PlanStates, APlanWithoutStatesKeepsAllWeights) {
  // One of the weights is read by no record.
  EXPECT_THAT(weightsThatRecordsRead(samplePlan().plan), ElementsAre(true, true));
  EXPECT_EQ(planMemory(samplePlan().plan).states, 0u);
}

TEST(PlanStates, OnlyStatesAreReadBeforeTheyAreWritten) {
  SamplePlan sample = trainingPlan(DeviceKind::Cpu);
  ASSERT_TRUE(validate(sample.plan).isOk()) << validate(sample.plan).message();
  Bucket &step = sample.plan.entries[0].buckets[0];
  step.arenaBytes = 512;
  step.tensors[5].slot = {BufferKind::Arena, 0, 256};
  EXPECT_THAT(validate(sample.plan).message(),
              HasSubstr("reads tensor 5, which no earlier record has written"));
}

struct StateViolation {
  const char *name;
  std::function<void(PlanData &)> breakIt;
  const char *message;
};
void PrintTo(const StateViolation &violation, std::ostream *os) {
  *os << violation.name;
}

/// Adds a state that begins as zeros.
std::function<void(PlanData &)> addState(const char *name, StateRole role, DType dtype,
                                         std::vector<int64_t> sizes) {
  return [=](PlanData &plan) { plan.states.push_back({name, role, dtype, sizes}); };
}

TEST(PlanStates, OfOneParameterAreTaken) {
  PlanData plan = trainingPlan(DeviceKind::Cpu).plan;
  addState("w:ema", StateRole::Average, DType::F32, {kTrained})(plan);
  addState("w:gradient", StateRole::Gradient, DType::F64, {kTrained})(plan);
  addState("w:bf16", StateRole::Copy, DType::BF16, {kTrained})(plan);
  addState("optimizer", StateRole::Parameter, DType::F32, {2})(plan); // As in optimizer:step.
  addState("a:b", StateRole::Parameter, DType::F32, {3})(plan);
  addState("a:b:ema", StateRole::Average, DType::F32, {3})(plan);
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

class InvalidState : public testing::TestWithParam<StateViolation> {};

TEST_P(InvalidState, IsNamed) {
  PlanData plan = trainingPlan(DeviceKind::Cpu).plan;
  ASSERT_TRUE(validate(plan).isOk()) << validate(plan).message();
  GetParam().breakIt(plan);
  const Status status = validate(plan);
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, InvalidState,
    testing::Values(
        StateViolation{"Role", [](PlanData &p) { p.states[1].role = StateRole(kNumStateRoles); },
                       "state 'seen': unknown role 7"},
        StateViolation{"DType", [](PlanData &p) { p.states[1].dtype = DType(10); },
                       "state 'seen': unknown element type 10"},
        StateViolation{"Sizes", [](PlanData &p) { p.states[1].sizes = {-1}; },
                       "state 'seen': sizes are negative or too large"},
        StateViolation{"NoName", [](PlanData &p) { p.states[1].name = ""; }, "a name is empty"},
        StateViolation{"NameTwice", [](PlanData &p) { p.states[1].name = "w"; },
                       "the name 'w' is used twice"},
        StateViolation{"InitialOfAnotherDType",
                       [](PlanData &p) { p.weights[0].dtype = DType::I32; },
                       "state 'w': its first value, weight 'w', is of another type"},
        StateViolation{"InitialOfOtherSizes", [](PlanData &p) { p.states[0].initial = 1; },
                       "state 'w': its first value, weight 'lr', is of another type"},
        StateViolation{"NoSuchInitial", [](PlanData &p) { p.states[0].initial = 2; },
                       "state 'w': there is no weight 2"},
        StateViolation{"MomentOfOtherSizes", [](PlanData &p) { p.states[2].sizes = {5}; },
                       "state 'w:exp_avg': it is f32[5], and its parameter f32[4]"},
        StateViolation{"MomentOfAnotherDType", [](PlanData &p) { p.states[2].dtype = DType::F64; },
                       "state 'w:exp_avg': it is f64[4], and its parameter f32[4]"},
        StateViolation{"AverageOfOtherSizes",
                       addState("w:ema", StateRole::Average, DType::F32, {8}),
                       "state 'w:ema': it is f32[8], and its parameter f32[4]"},
        StateViolation{"AverageOfAnotherDType",
                       addState("w:ema", StateRole::Average, DType::F64, {4}),
                       "state 'w:ema': it is f64[4], and its parameter f32[4]"},
        StateViolation{"AverageOfAnotherRole",
                       addState("w:ema", StateRole::Optimizer, DType::F32, {4}),
                       "state 'w:ema': the role optimizer does not go with this name"},
        StateViolation{"ParameterWithTheNameOfAnAverage",
                       addState("w:ema", StateRole::Parameter, DType::F32, {8}),
                       "state 'w:ema': the role parameter does not go with this name"},
        StateViolation{"AverageOfAnotherName",
                       addState("w:mean", StateRole::Average, DType::F32, {4}),
                       "state 'w:mean': the role average does not go with this name"},
        StateViolation{"AverageOfNothing", addState("v:ema", StateRole::Average, DType::F32, {4}),
                       "state 'v:ema': its role is average, and there is no parameter 'v'"},
        StateViolation{"AverageOfABuffer",
                       addState("seen:ema", StateRole::Average, DType::F32, {4}),
                       "state 'seen:ema': its role is average, and there is no parameter 'seen'"},
        StateViolation{"GradientOfOtherSizes",
                       addState("w:gradient", StateRole::Gradient, DType::F32, {1}),
                       "state 'w:gradient': it is f32[1], and its parameter f32[4]"},
        StateViolation{"GradientOfIntegers",
                       addState("w:gradient", StateRole::Gradient, DType::I32, {4}),
                       "state 'w:gradient': it is i32[4], and its parameter f32[4]"},
        StateViolation{"CopyOfOtherSizes", addState("w:bf16", StateRole::Copy, DType::BF16, {2}),
                       "state 'w:bf16': it is bf16[2], and its parameter f32[4]"},
        StateViolation{"CopyOfAnotherName", addState("w:f16", StateRole::Copy, DType::BF16, {4}),
                       "state 'w:f16': the role copy does not go with this name"},
        StateViolation{"NotesOfAFile", addState("__metadata__", StateRole::Buffer, DType::F32, {4}),
                       "state '__metadata__': files of safetensors keep this name for their notes"},
        StateViolation{"NoSuchState",
                       [](PlanData &p) { p.entries[0].buckets[0].tensors[5].slot.index = 5; },
                       "there is no state 5"},
        StateViolation{"ReadAsAnotherType",
                       [](PlanData &p) { p.entries[0].buckets[0].tensors[5].dtype = DType::I32; },
                       "is i32 in a state of f32"},
        StateViolation{"ReadPastItsEnd",
                       [](PlanData &p) { p.entries[0].buckets[0].tensors[5].slot.offset = 4; },
                       "reaches past the 16 bytes of its buffer"},
        StateViolation{"BranchesThatWriteOneState",
                       [](PlanData &p) {
                         std::vector<LaunchRecord> &records = p.entries[0].buckets[0].records;
                         records[3].branch = 1; // Writes m.
                         records[4].branch = 2; // Reads it.
                       },
                       "are in different branches and use the same memory"}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cgc::test
