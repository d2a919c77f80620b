// Trainer: steps that consist of micro-batches, their checkpoints, and misuse.
#include "runtime/train/safetensors.h"
#include "tests/unit/runtime/train/accumulated_plan.h"

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(AccumulatedPlan, StepsAreThoseOfTheMeanGradient) {
  Result<Trainer> trainer = create({.readOutputs = true});
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  AccumulatedModel model;
  expectAllStates(*trainer, model);
  int next = 0;
  for (uint64_t number = 1; number <= 4; ++number) {
    for (uint64_t i = 0; i < number; ++i, ++next) {
      ASSERT_TRUE(accumulate(*trainer, next).isOk());
      model.accumulate(batch(next));
      EXPECT_EQ(trainer->stepNumber(), number - 1);
      expectAllStates(*trainer, model);
    }
    const Status updated = trainer->update();
    ASSERT_TRUE(updated.isOk()) << updated.message();
    const float loss = model.update();
    ASSERT_TRUE(trainer->wait().isOk());
    const auto results = trainer->poll();
    ASSERT_TRUE(results.isOk() && results->size() == 1);
    EXPECT_EQ((*results)[0].step, number);
    EXPECT_EQ((*results)[0].loss, loss);
    EXPECT_EQ((*results)[0].outputs.size(), 1u);
    expectAllStates(*trainer, model);
  }
  // Whole steps go between updates.
  ASSERT_TRUE(step(*trainer, batch(next)).isOk());
  model.step(batch(next));
  expectAllStates(*trainer, model);
  ASSERT_TRUE(accumulate(*trainer, next).isOk());
  ASSERT_TRUE(trainer->reset().isOk());
  EXPECT_EQ(trainer->microBatches(), 0u);
  expectAllStates(*trainer, AccumulatedModel());
  ASSERT_TRUE(step(*trainer, batch(0)).isOk()); // No update is due.
}

TEST_F(AccumulatedPlan, AnUpdateOfOneBatchIsAStep) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(accumulate(*trainer, i).isOk());
    ASSERT_TRUE(trainer->update().isOk());
    model.step(batch(i));
  }
  expectStates(*trainer, model);
}

TEST_F(AccumulatedPlan, MisuseIsNamedAndChangesNothing) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  AccumulatedModel model;
  EXPECT_THAT(trainer->update().message(), HasSubstr("call accumulate() first"));
  ASSERT_TRUE(accumulate(*trainer, 0).isOk());
  model.accumulate(batch(0));
  const Status between = step(*trainer, batch(1));
  EXPECT_EQ(between.code(), Code::Usage);
  EXPECT_THAT(between.message(), AllOf(HasSubstr("1 micro-batch"), HasSubstr("update()")));
  EXPECT_EQ(trainer->accumulate({}).code(), Code::Usage);
  expectAllStates(*trainer, model);
  ASSERT_TRUE(trainer->update().isOk());
  model.update();
  EXPECT_EQ(trainer->update().code(), Code::Usage);
  expectAllStates(*trainer, model);

  Result<Trainer> without = create(planOf(trainingPlan(kTestDevice)));
  ASSERT_TRUE(without.isOk());
  const Status refused = accumulate(*without, 0);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("--accumulate"));
  EXPECT_EQ(without->update().code(), Code::Usage);
}

TEST_F(AccumulatedPlan, PlansWithoutAPartAreRefused) {
  const auto refusal = [&](auto change) {
    SamplePlan sample = accumulatingPlan(kTestDevice);
    change(sample.plan);
    return create(planOf(sample)).status().message();
  };
  EXPECT_THAT(refusal([](PlanData &p) { p.entries.erase(p.entries.begin() + 3); }),
              HasSubstr("no entry 'gradient.next'"));
  EXPECT_THAT(refusal([](PlanData &p) { p.states[6].name = "count"; }),
              HasSubstr("no state 'accumulated:micro_batches'"));
}

/// The count follows its state, however that is written.
TEST_F(AccumulatedPlan, TheCountIsThatOfItsState) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(accumulate(*trainer, 0).isOk());
  ASSERT_TRUE(trainer->set(kMicroBatchesState, 0).isOk());
  EXPECT_EQ(trainer->microBatches(), 0u);
  int64_t three = 3;
  ASSERT_TRUE(
      trainer->write(kMicroBatchesState, {&three, DType::I64, DeviceKind::Cpu, {}, {}}).isOk());
  EXPECT_EQ(trainer->microBatches(), 3u);
}

TEST_F(AccumulatedPlan, ResumingBetweenMicroBatchesIsBitEqual) {
  const std::string path = folder_ / "run";
  Result<Trainer> first = create(), second = create();
  ASSERT_TRUE(first.isOk() && second.isOk());
  AccumulatedModel model;
  // The second one has states of its own before.
  ASSERT_TRUE(accumulate(*second, 7).isOk());
  ASSERT_TRUE(second->update().isOk());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(accumulate(*first, i).isOk());
    model.accumulate(batch(i));
  }
  ASSERT_TRUE(first->update().isOk());
  model.update();
  ASSERT_TRUE(accumulate(*first, 2).isOk());
  model.accumulate(batch(2));
  ASSERT_TRUE(first->save(path).isOk());
  const auto info = second->load(path);
  ASSERT_TRUE(info.isOk()) << info.status().message();
  EXPECT_EQ(info->step, 1u);
  expectAllStates(*second, model);
  ASSERT_TRUE(accumulate(*second, 3).isOk());
  model.accumulate(batch(3));
  ASSERT_TRUE(second->update().isOk());
  const float loss = model.update();
  ASSERT_TRUE(second->wait().isOk());
  EXPECT_EQ(second->poll()->at(0).loss, loss);
  expectAllStates(*second, model);
}

/// Gradients that have been used take no room in a checkpoint.
TEST_F(AccumulatedPlan, CountsThatCannotBeAreRefused) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(accumulate(*trainer, 0).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  const std::string path = folder_ / "run/optimizer.safetensors", good = readFile(path);
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(good)));
  ASSERT_TRUE(file.isOk());
  const SafetensorsTensor *const tensor = file->find("accumulated.micro_batches");
  ASSERT_TRUE(tensor);
  const auto at = size_t(reinterpret_cast<const char *>(tensor->bytes.data()) - good.data());
  for (const int64_t count : {int64_t(-1), int64_t(1) << 60, int64_t(1) << 31, INT64_MIN}) {
    std::string bad = good;
    std::memcpy(bad.data() + at, &count, sizeof(count));
    writeFile(path, bad);
    const Status refused = trainer->load(folder_ / "run").status();
    EXPECT_EQ(refused.code(), Code::InvalidFile);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr(folder_ / "run"),
                      HasSubstr("'accumulated.micro_batches': an update takes 0 to 2147483647"),
                      HasSubstr("use another checkpoint")));
    EXPECT_EQ(trainer->microBatches(), 1u);
  }
  writeFile(path, good);
  EXPECT_TRUE(trainer->load(folder_ / "run").isOk());
  int64_t count = -1;
  for (const Status &refused :
       {trainer->set(kMicroBatchesState, -1), trainer->set(kMicroBatchesState, 0x1p60),
        trainer->write(kMicroBatchesState, {&count, DType::I64, DeviceKind::Cpu, {}, {}})}) {
    EXPECT_EQ(refused.code(), Code::Usage);
    EXPECT_THAT(refused.message(), HasSubstr("an update takes 0 to 2147483647 micro-batches"));
  }
  EXPECT_EQ(trainer->microBatches(), 1u);
}

TEST_F(AccumulatedPlan, CheckpointsHaveGradientsOnlyBetweenMicroBatches) {
  const std::string path = folder_ / "run";
  Result<Trainer> trainer = create(), other = create();
  ASSERT_TRUE(trainer.isOk() && other.isOk());
  const auto hasGradient = [&] {
    const auto file = SafetensorsFile::open(path + "/optimizer.safetensors");
    return file.isOk() && file->find("w.gradient") != nullptr;
  };
  ASSERT_TRUE(accumulate(*trainer, 0).isOk());
  ASSERT_TRUE(trainer->save(path).isOk());
  EXPECT_TRUE(hasGradient());
  ASSERT_TRUE(trainer->update().isOk());
  ASSERT_TRUE(trainer->save(path).isOk());
  EXPECT_FALSE(hasGradient());
  ASSERT_TRUE(accumulate(*other, 1).isOk());
  const auto info = other->load(path);
  ASSERT_TRUE(info.isOk()) << info.status().message();
  EXPECT_EQ(other->microBatches(), 0u);
  AccumulatedModel model;
  model.accumulate(batch(0));
  model.update();
  expectAllStates(*other, model);
}

} // namespace
} // namespace cgc::test
