// The fixture of the tests of Trainer: the plan of training_plan.h on the host or on the fake GPU.
#pragma once

#include "runtime/train/trainer.h"
#include "tests/temp_folder.h"
#include "tests/test_device/test_device.h"
#include "tests/unit/runtime/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace cgc::test {

inline const std::vector<int64_t> kParameterSizes = {kTrained};

inline TensorView floatView(std::vector<float> &values, std::span<const int64_t> sizes) {
  return {values.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
}

class TrainedPlan : public testing::Test {
protected:
  TrainedPlan() { provider_.ops = trainingOps(doWork); }

  static std::shared_ptr<const Plan> planOf(const SamplePlan &sample) {
    Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    return std::make_shared<const Plan>(*std::move(plan));
  }
  Result<Trainer> create(TrainerOptions options = {}) { return create(plan_, std::move(options)); }
  Result<Trainer> create(std::shared_ptr<const Plan> plan, TrainerOptions options = {}) {
    options.engine.provider = &provider_;
    return Trainer::create(std::move(plan), std::move(options));
  }

  static Status step(Trainer &trainer, std::vector<float> x) {
    const TensorView view = floatView(x, kParameterSizes);
    return trainer.step({&view, 1});
  }
  /// Makes steps on the batches `begin` to `end` - 1, and returns their losses.
  static Result<std::vector<double>> train(Trainer &trainer, int begin, int end) {
    std::vector<double> losses;
    for (int i = begin; i < end; ++i) {
      CGC_TRY(step(trainer, batch(i)));
      CGC_TRY(trainer.wait());
      CGC_ASSIGN_OR_RETURN(const std::vector<StepResult> results, trainer.poll());
      for (const StepResult &result : results)
        losses.push_back(result.loss);
    }
    return losses;
  }
  static std::vector<float> read(Trainer &trainer, std::string_view name) {
    std::vector<float> values(kTrained);
    const Status status = trainer.read(name, floatView(values, kParameterSizes));
    EXPECT_TRUE(status.isOk()) << status.message();
    return values;
  }
  static int64_t readSteps(Trainer &trainer) {
    int64_t value = -1;
    const Status status =
        trainer.read("optimizer:step", {&value, DType::I64, DeviceKind::Cpu, {}, {}});
    EXPECT_TRUE(status.isOk()) << status.message();
    return value;
  }
  /// All states of `trainer` equal those of `model`, bit by bit.
  static void expectStates(Trainer &trainer, const TrainedModel &model) {
    EXPECT_EQ(read(trainer, "w"), model.w);
    EXPECT_EQ(read(trainer, "w:exp_avg"), model.m);
    EXPECT_EQ(read(trainer, "seen"), model.seen);
    EXPECT_EQ(readSteps(trainer), model.steps);
  }

  const TempFolder folder_;
  FakeProvider provider_;
  std::shared_ptr<const Plan> plan_ = planOf(trainingPlan(kTestDevice));
};

} // namespace cgc::test
