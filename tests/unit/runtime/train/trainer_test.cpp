// Trainer: steps and their losses, control values, states, and misuse.
#include "runtime/exec/buffer.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <cstring>
#include <limits>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(TrainedPlan, StepsComputeWhatTheModelComputes) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  TrainedModel model;
  expectStates(*trainer, model); // The warm-up runs trained nothing.
  for (int i = 0; i < 5; ++i) {
    const float loss = model.step(batch(i));
    ASSERT_TRUE(step(*trainer, batch(i)).isOk());
    ASSERT_TRUE(trainer->wait().isOk());
    const auto results = trainer->poll();
    ASSERT_TRUE(results.isOk()) << results.status().message();
    ASSERT_EQ(results->size(), 1u);
    EXPECT_EQ((*results)[0].step, uint64_t(i + 1));
    EXPECT_EQ((*results)[0].loss, loss);
    EXPECT_THAT((*results)[0].outputs, IsEmpty());
  }
  expectStates(*trainer, model);
  EXPECT_EQ(trainer->stepNumber(), 5u);
  EXPECT_EQ(trainer->nonFinite(), 0u);
  EXPECT_EQ(trainer->memory().states, 1028u);
}

TEST_F(TrainedPlan, LossesOfStepsInFlightComeInOrder) {
  Result<Trainer> trainer = create({.stepsInFlight = 3});
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  TrainedModel model;
  std::vector<float> losses;
  std::vector<double> polled;
  const auto take = [&] {
    const auto results = trainer->poll();
    ASSERT_TRUE(results.isOk()) << results.status().message();
    for (const StepResult &result : *results)
      polled.push_back(result.loss);
  };
  for (int i = 0; i < 10; ++i) {
    losses.push_back(model.step(batch(i)));
    ASSERT_TRUE(step(*trainer, batch(i)).isOk());
    take();
  }
  ASSERT_TRUE(trainer->wait().isOk());
  take();
  EXPECT_EQ(polled, std::vector<double>(losses.begin(), losses.end()));
}

TEST_F(TrainedPlan, ResultsThatNobodyPollsAreDroppedFromTheOldestOn) {
  Result<Trainer> trainer = create({.stepsInFlight = 2});
  ASSERT_TRUE(trainer.isOk());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(step(*trainer, batch(i)).isOk());
  ASSERT_TRUE(trainer->wait().isOk());
  const auto results = trainer->poll();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[0].step, 4u);
  EXPECT_EQ((*results)[1].step, 5u);
  EXPECT_THAT(*trainer->poll(), IsEmpty());
}

TEST_F(TrainedPlan, AllOutputsAreReadBackIfAsked) {
  Result<Trainer> trainer = create({.readOutputs = true});
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(step(*trainer, batch(0)).isOk());
  ASSERT_TRUE(trainer->wait().isOk());
  const auto results = trainer->poll();
  ASSERT_EQ(results->size(), 1u);
  EXPECT_THAT((*results)[0].outputs, ElementsAre(floatBytes({TrainedModel().step(batch(0))})));
}

TEST_F(TrainedPlan, ControlValuesAreOrderedWithTheSteps) {
  Result<Trainer> trainer = create({.stepsInFlight = 4});
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model;
  for (int i = 0; i < 12; ++i) {
    model.lr = 1.0F / float(i + 2);
    ASSERT_TRUE(trainer->set(i % 2 ? "lr" : "optimizer:lr", model.lr).isOk());
    ASSERT_TRUE(step(*trainer, batch(i)).isOk());
    model.step(batch(i));
  }
  expectStates(*trainer, model);
  ASSERT_TRUE(trainer->set("step", 7).isOk());
  EXPECT_EQ(readSteps(*trainer), 7);
}

TEST_F(TrainedPlan, OneLearningRateKeepsTheRatioOfTheGroups) {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.weights[1].sizes = sample.plan.states[4].sizes = {3};
  sample.weights[1] = floatBytes({0.25, 0, 0.5}); // The last one is that of no group.
  Result<Trainer> trainer = create(planOf(sample));
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  std::vector<float> rates(3);
  const std::vector<int64_t> sizes = {3};
  ASSERT_TRUE(trainer->set("lr", 3).isOk());
  ASSERT_TRUE(trainer->read("optimizer:lr", floatView(rates, sizes)).isOk());
  EXPECT_THAT(rates, ElementsAre(1.5F, 0, 3));
  const std::vector<double> each = {1, 2, 4};
  ASSERT_TRUE(trainer->set("lr", each).isOk());
  ASSERT_TRUE(trainer->read("optimizer:lr", floatView(rates, sizes)).isOk());
  EXPECT_THAT(rates, ElementsAre(1, 2, 4));
  sample.weights[1] = floatBytes({0, 0, 0});
  trainer = create(planOf(sample));
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  EXPECT_THAT(trainer->set("lr", 1).message(), HasSubstr("give a value for each of them"));
  EXPECT_TRUE(trainer->set("lr", each).isOk());
}

TEST_F(TrainedPlan, ControlValuesThatDoNotFitAreRefused) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), kInfinity, 1e39})
    EXPECT_THAT(trainer->set("lr", bad).message(), HasSubstr("'optimizer:lr' is f32")) << bad;
  EXPECT_THAT(trainer->set("lr", 1e39).message(), HasSubstr("1e+39"));
  for (const double bad : {0.5, 0x1p63, 1e19, std::nextafter(-0x1p63, -kInfinity), -kInfinity})
    EXPECT_THAT(trainer->set("step", bad).message(), HasSubstr("'optimizer:step' is i64")) << bad;
  const std::vector<double> two = {1, 2};
  EXPECT_THAT(trainer->set("lr", two).message(), HasSubstr("has 1 elements, not 2; give one"));
  EXPECT_THAT(trainer->set("momentum", 1).message(),
              HasSubstr("no control value 'momentum'; the plan has optimizer:step, optimizer:lr"));
  EXPECT_EQ(trainer->set("w", 1).code(), Code::Usage);
  expectStates(*trainer, TrainedModel());
  // The least and the largest number that both types have.
  for (const double good : {-0x1p63, std::nextafter(0x1p63, 0)}) {
    EXPECT_TRUE(trainer->set("step", good).isOk()) << good;
    EXPECT_EQ(readSteps(*trainer), int64_t(good));
  }
}

TEST_F(TrainedPlan, EvaluatesWithTheStatesOfTheStepsBefore) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model;
  model.step(batch(3));
  ASSERT_TRUE(step(*trainer, batch(3)).isOk());
  std::vector<float> x = batch(4), loss(1);
  const TensorView in = floatView(x, kParameterSizes), out = floatView(loss, {});
  ASSERT_TRUE(trainer->evaluate({&in, 1}, {&out, 1}).isOk());
  EXPECT_EQ(loss[0], model.evaluate(batch(4)));
  expectStates(*trainer, model);
}

TEST_F(TrainedPlan, StatesAreWrittenAndReset) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model;
  model.w = {9, 8, 7, 6};
  std::vector<float> w = model.w;
  ASSERT_TRUE(trainer->write("w", floatView(w, kParameterSizes)).isOk());
  model.step(batch(1));
  ASSERT_TRUE(step(*trainer, batch(1)).isOk());
  expectStates(*trainer, model);
  ASSERT_TRUE(trainer->reset().isOk());
  expectStates(*trainer, TrainedModel());
  EXPECT_EQ(trainer->stepNumber(), 0u);
  EXPECT_THAT(*trainer->poll(), IsEmpty());
  EXPECT_EQ(trainer->write("v", floatView(w, kParameterSizes)).code(), Code::Usage);
  const std::vector<int64_t> sizes = {2};
  EXPECT_EQ(trainer->read("w", floatView(w, sizes)).code(), Code::Usage);
}

TEST_F(TrainedPlan, LossesThatAreNoNumbersAreCounted) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(step(*trainer, batch(0)).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  ASSERT_TRUE(step(*trainer, {std::nanf(""), 0, 0, 0}).isOk());
  ASSERT_TRUE(trainer->wait().isOk());
  EXPECT_EQ(trainer->nonFinite(), 1u);
  ASSERT_TRUE(trainer->load(folder_ / "run").isOk());
  EXPECT_EQ(trainer->nonFinite(), 0u);
  ASSERT_TRUE(step(*trainer, {std::nanf(""), 0, 0, 0}).isOk());
  ASSERT_TRUE(trainer->wait().isOk());
  EXPECT_GT(trainer->nonFinite(), 0u);
  ASSERT_TRUE(trainer->reset().isOk());
  EXPECT_EQ(trainer->nonFinite(), 0u);
}

TEST_F(TrainedPlan, InputsThatDoNotFitChangeNothing) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  std::vector<float> x(5);
  const std::vector<int64_t> sizes = {5};
  const TensorView view = floatView(x, sizes);
  EXPECT_EQ(trainer->step({&view, 1}).code(), Code::Usage);
  EXPECT_EQ(trainer->step({}).code(), Code::Usage);
  EXPECT_EQ(trainer->stepNumber(), 0u);
  expectStates(*trainer, TrainedModel()); // The trainer goes on.
}

/// Labels of 5 classes, of which one may be ignored, beside the batch.
TEST_F(TrainedPlan, ALabelOutOfRangeChangesNothing) {
  SamplePlan sample = trainingPlan(kTestDevice);
  for (Entry &entry : sample.plan.entries)
    entry.buckets[0].inputs.push_back(
        {.name = "label",
         .dtype = DType::I64,
         .sizes = {3},
         .indexBounds = {{.end = 5, .sizes = {3}, .strides = {1}, .exempt = -100}}});
  Result<Trainer> trainer = create(planOf(sample));
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  TrainedModel model;
  std::vector<float> x = batch(0);
  const std::vector<int64_t> sizes = {3};
  // Labels in the memory of the device.
  Result<Buffer> buffer = Buffer::allocate(kTestDevice, 3 * sizeof(int64_t));
  ASSERT_TRUE(buffer.isOk());
  const auto stepWith = [&](std::vector<int64_t> labels, bool inDeviceMemory) {
    TensorView label{labels.data(), DType::I64, DeviceKind::Cpu, sizes, {}};
    if (inDeviceMemory) { // The fake GPU's memory is host memory.
      std::memcpy(buffer->data(), labels.data(), 3 * sizeof(int64_t));
      label = {buffer->data(), DType::I64, kTestDevice, sizes, {}};
    }
    const TensorView views[] = {floatView(x, kParameterSizes), label};
    return trainer->step(views);
  };
  for (const bool inDeviceMemory : {false, true})
    for (const int64_t label : {int64_t(5), int64_t(99), int64_t(-7), int64_t(1000000000000)}) {
      const Status refused = stepWith({4, label, 0}, inDeviceMemory);
      EXPECT_EQ(refused.code(), Code::Usage);
      EXPECT_THAT(refused.message(),
                  AllOf(HasSubstr("input 'label': element 1 is " + std::to_string(label)),
                        HasSubstr("from 0 to 4, or -100")));
      EXPECT_THAT(refused.message(), Not(HasSubstr("earlier")));
    }
  EXPECT_EQ(trainer->stepNumber(), 0u);
  expectStates(*trainer, model);
  // The trainer goes on.
  for (const bool inDeviceMemory : {false, true}) {
    const Status stepped = stepWith({4, -100, 0}, inDeviceMemory);
    EXPECT_TRUE(stepped.isOk()) << stepped.message();
    ASSERT_TRUE(trainer->wait().isOk());
    model.step(x);
  }
  expectStates(*trainer, model);
}

TEST_F(TrainedPlan, OtherPlansAreRefused) {
  const auto message = [&](auto change) {
    SamplePlan sample = trainingPlan(kTestDevice);
    change(sample.plan);
    return create(planOf(sample)).status().message();
  };
  EXPECT_THAT(message([](PlanData &p) { p.entries[0].name = "main"; }),
              HasSubstr("no training plan: it has no entry 'step'"));
  EXPECT_THAT(message([](PlanData &p) { p.states[0].role = StateRole::Buffer; }),
              HasSubstr("no parameter that a step could train"));
  EXPECT_THAT(message([](PlanData &p) {
                Bucket &bucket = p.entries[0].buckets[0];
                bucket.outputs[0].sizes = {1, 2};
                bucket.tensors[2].sizes = {1, 2};
                bucket.tensors[2].strides = {2, 1};
              }),
              HasSubstr("is not one floating-point number"));
  EXPECT_THAT(message([](PlanData &p) { p.states[1].name = "m.w"; }), "");
  EXPECT_EQ(create({.stepsInFlight = 0}).status().code(), Code::Usage);
  EXPECT_EQ(create(nullptr).status().code(), Code::Usage);
}

TEST_F(TrainedPlan, NamesThatWouldBeEqualInAFileAreRefused) {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.states[1].name = "m.w";
  EXPECT_THAT(create(planOf(sample), {.prefix = "m."}).status().message(),
              HasSubstr("two states would be called 'w' in a checkpoint; give another "
                        "TrainerOptions::prefix"));
  EXPECT_THAT(create(planOf(sample), {.prefix = "m.", .words = {.prefix = "another --prefix"}})
                  .status()
                  .message(),
              HasSubstr("give another --prefix"));
  sample.plan.states[1].name = "m.__metadata__";
  EXPECT_THAT(create(planOf(sample), {.prefix = "m."}).status().message(),
              HasSubstr("state 'm.__metadata__' would be called '__metadata__' in a checkpoint"));
  EXPECT_TRUE(create(planOf(sample)).isOk());
}

} // namespace
} // namespace cgc::test
