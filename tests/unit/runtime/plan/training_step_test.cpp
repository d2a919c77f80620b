// The step that a training plan names: in the file, in the listing, and among the invariants.
#include "runtime/plan/plan_file.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace cgc::test {
namespace {

using testing::HasSubstr;

/// A plan whose optimizer has one group and no value of PyTorch's.
SamplePlan namedStep() {
  SamplePlan sample = trainingPlan(DeviceKind::Cpu);
  sample.plan.weights[1].sizes = sample.plan.states[4].sizes = {2};
  sample.weights[1] = floatBytes({0.5, 0.25});
  OptimizerOptions optimizer{.rule = OptimizerRule::AdamW,
                             .nesterov = true,
                             .groups = {{.globs = {"a.*", "@vectors"}, .weightDecay = 0}},
                             .schedule = LearningRateSchedule::Cosine,
                             .clamps = {{"scale", -1, 4.5}},
                             .growthInterval = 7,
                             .keepsGradients = true,
                             .copies = false};
  double value = 0.5;
  for (const OptimizerNumber &number : kOptimizerNumbers)
    optimizer.*number.value = value++;
  sample.plan.training = TrainingStep{"forward", 1, DType::BF16, optimizer};
  return sample;
}

TEST(PlanTraining, SurvivesTheFile) {
  SamplePlan sample = namedStep();
  const TempFolder folder;
  for (const auto &change : std::vector<std::function<void(TrainingStep &)>>{
           [](auto &) {},
           [](auto &step) {
             step.autocast.reset();
             step.optimizer.groups.push_back({.globs = {}, .weightDecay = {}, .lrScale = 0.1});
             step.optimizer.groups.erase(step.optimizer.groups.begin());
           },
           [](auto &step) { step.optimizer.lr = -0.0; }}) {
    change(*sample.plan.training);
    const Status written = writePlan(sample.plan, sample.weightSpans(), folder / "p");
    ASSERT_TRUE(written.isOk()) << written.message();
    const Result<Plan> plan = Plan::load(folder / "p");
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_EQ(plan->data().training, sample.plan.training);
    EXPECT_EQ(std::signbit(plan->data().training->optimizer.lr),
              std::signbit(sample.plan.training->optimizer.lr));
  }
}

TEST(PlanTraining, IsListed) {
  SamplePlan sample = namedStep();
  sample.plan.training->optimizer.eps = 1e-6;
  EXPECT_THAT(toText(sample.plan),
              HasSubstr("training \"forward\" loss=1 autocast=bf16 rule=\"adamw\" lr=\"0.5\" "));
  EXPECT_THAT(toText(sample.plan), HasSubstr(" eps=\"1e-06\" "));
  EXPECT_THAT(toText(sample.plan), HasSubstr(" groups=\"a.*|@vectors:weight_decay=0\" "));
  EXPECT_THAT(toText(sample.plan), HasSubstr(" clamp=\"scale=-1:4.5\" "));
}

struct Wrong {
  const char *message;
  std::function<void(PlanData &, TrainingStep &)> change;
};

class InvalidTraining : public testing::TestWithParam<Wrong> {};

TEST_P(InvalidTraining, IsNamed) {
  PlanData plan = namedStep().plan;
  ASSERT_TRUE(validate(plan).isOk()) << validate(plan).message();
  GetParam().change(plan, *plan.training);
  const Status status = validate(plan);
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr(std::string("training: ") + GetParam().message));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Plans, InvalidTraining,
    testing::Values(
        Wrong{"there is no entry 'step'", [](auto &p, auto &) { p.entries[0].name = "other"; }},
        Wrong{"the method", [](auto &, auto &t) { t.method = "\x1b[2J"; }},
        Wrong{"the dtype of autocast", [](auto &, auto &t) { t.autocast = DType::F32; }},
        Wrong{"the rule", [](auto &, auto &t) { t.optimizer.rule = OptimizerRule(3); }},
        Wrong{"the rule or the schedule",
              [](auto &, auto &t) { t.optimizer.schedule = LearningRateSchedule(4); }},
        Wrong{"'lr' is negative", [](auto &, auto &t) { t.optimizer.lr = -1; }},
        Wrong{"'step-factor' is negative or not finite",
              [](auto &, auto &t) { t.optimizer.stepFactor = kInfinity; }},
        Wrong{"a group", [](auto &, auto &t) { t.optimizer.groups[0].globs[1] = "a\n"; }},
        Wrong{"a group", [](auto &, auto &t) { t.optimizer.groups[0].lrScale = -1; }},
        Wrong{"a group", [](auto &, auto &t) { t.optimizer.groups[0].weightDecay = NAN; }},
        Wrong{"a clamp", [](auto &, auto &t) { t.optimizer.clamps[0].path = ""; }},
        Wrong{"a clamp", [](auto &, auto &t) { t.optimizer.clamps[0].min = 5; }},
        Wrong{"a clamp", [](auto &, auto &t) { t.optimizer.clamps[0].max = kInfinity; }},
        Wrong{"the growth interval", [](auto &, auto &t) { t.optimizer.growthInterval = -1; }},
        Wrong{"the state 'optimizer:lr' has no rate for each of its groups",
              [](auto &, auto &t) { t.optimizer.groups.clear(); }},
        Wrong{"the state 'optimizer:lr'",
              [](auto &p, auto &) { p.states[4].name = "optimizer:other"; }}));

} // namespace
} // namespace cgc::test
