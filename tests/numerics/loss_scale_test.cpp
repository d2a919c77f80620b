// The dynamic loss scale of training steps under autocast to f16: it is not seen, and an overflow
// changes nothing else.
#include "tests/numerics/training_step.h"

namespace cgc::test {
namespace {

class LossScale : public testing::Test {
protected:
  void SetUp() override {
    const std::string options = std::string(kAdamW) + ",clip-norm=0.5,ema=0.9,keep-gradients=true";
    scaled_.compile("train_mlp", kVectors,
                    {.optimizer = optimizerOf(options + ",growth-interval=3"),
                     .autocast = DType::F16,
                     .accumulates = true});
    plain_.compile("train_mlp", kVectors, {.optimizer = optimizerOf(options), .accumulates = true});
  }

  double scale() { return scaled_.state("optimizer:loss_scale").item<double>(); }
  int64_t count(const std::string &name) {
    return scaled_.state("optimizer:" + name).item<int64_t>();
  }

  TrainingStep scaled_, plain_;
};

/// Loss, gradients, their norm and the update are those of an unscaled loss, but for f16's
/// rounding.
TEST_F(LossScale, ScalesNothingThatIsSeen) {
  // In the first step, a sum over 65536 times the gradient of the loss would be beyond f16.
  float first = 1024;
  const TensorView view{&first, DType::F32, DeviceKind::Cpu, {}, {}};
  ASSERT_TRUE(scaled_.context_->writeState("optimizer:loss_scale", view).isOk());
  at::manual_seed(7);
  for (int step = 0; step < 5; ++step) {
    const std::vector<at::Tensor> inputs = randomInputsOf(kVectors, 10),
                                  got = scaled_.outputs("step", inputs),
                                  expected = plain_.outputs("step", inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(difference(got[i], expected[i]), 0.05)
          << scaled_.plan_->data().findEntry("step")->buckets[0].outputs[i].name;
  }
  EXPECT_EQ(count("skipped"), 0);
  EXPECT_EQ(count("step"), 5);
}

TEST_F(LossScale, ClipsUnscaledGradientsByValue) {
  const std::string options = std::string(kAdamW) + ",clip-value=0.01";
  scaled_.compile("train_mlp", kVectors,
                  {.optimizer = optimizerOf(options), .autocast = DType::F16});
  plain_.compile("train_mlp", kVectors, {.optimizer = optimizerOf(options)});
  float first = 1024;
  const TensorView view{&first, DType::F32, DeviceKind::Cpu, {}, {}};
  ASSERT_TRUE(scaled_.context_->writeState("optimizer:loss_scale", view).isOk());
  at::manual_seed(7);
  const std::vector<at::Tensor> inputs = randomInputsOf(kVectors, 10);
  scaled_.run("step", inputs);
  plain_.run("step", inputs);
  const at::Tensor mean = plain_.state("model.0.weight:exp_avg");
  EXPECT_NEAR(mean.abs().max().item<double>(), 0.01 * 0.1, 1e-6) << "nothing is clipped";
  EXPECT_LT(difference(scaled_.state("model.0.weight:exp_avg"), mean), 0.05);
}

/// The gradients of micro-batches are summed under the scale, and the update divides by it. One
/// that overflows skips the update, as in PyTorch, and the next step begins anew.
TEST_F(LossScale, ScalesMicroBatches) {
  float first = 1024;
  const TensorView view{&first, DType::F32, DeviceKind::Cpu, {}, {}};
  ASSERT_TRUE(scaled_.context_->writeState("optimizer:loss_scale", view).isOk());
  at::manual_seed(7);
  for (int step = 0; step < 4; ++step) {
    for (const char *entry : {"gradient.first", "gradient.next"}) {
      const std::vector<at::Tensor> inputs = randomInputsOf(kVectors, 10);
      EXPECT_NEAR(scaled_.run(entry, inputs), plain_.run(entry, inputs), 0.05);
    }
    const std::vector<at::Tensor> got = scaled_.outputs("update", {}),
                                  expected = plain_.outputs("update", {});
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(difference(got[i], expected[i]), 0.05)
          << scaled_.plan_->data().findEntry("update")->buckets[0].outputs[i].name;
  }
  EXPECT_EQ(count("step"), 4);
  EXPECT_EQ(scale(), 2048); // After three steps.

  const at::Tensor weight = scaled_.state("model.0.weight");
  std::vector<at::Tensor> inputs = randomInputsOf(kVectors, 10);
  scaled_.run("gradient.first", inputs);
  inputs[0].mul_(1e6); // Beyond the range of f16.
  scaled_.run("gradient.next", inputs);
  scaled_.outputs("update", {});
  EXPECT_TRUE(at::equal(scaled_.state("model.0.weight"), weight));
  EXPECT_EQ(count("step"), 4);
  EXPECT_EQ(count("skipped"), 1);
  EXPECT_EQ(scale(), 1024);
  scaled_.run("gradient.first", randomInputsOf(kVectors, 10));
  scaled_.outputs("update", {});
  EXPECT_FALSE(at::equal(scaled_.state("model.0.weight"), weight));
  EXPECT_EQ(count("step"), 5);
}

/// torch.amp.GradScaler: a step with a gradient that is not finite halves the scale and changes
/// nothing else; as many good steps in a row as the interval double it.
TEST_F(LossScale, AnOverflowSkipsTheStep) {
  at::manual_seed(7);
  const auto step = [&](double factor) {
    std::vector<at::Tensor> inputs = randomInputsOf(kVectors, 10);
    inputs[0].mul_(factor);
    scaled_.run("step", inputs);
  };
  EXPECT_EQ(scale(), 65536);
  step(1);
  step(1);
  EXPECT_EQ(count("growth_tracker"), 2);
  std::map<std::string, at::Tensor> before;
  for (const State &one : scaled_.plan_->data().states)
    before.emplace(one.name, scaled_.state(one.name));
  step(1e6); // Beyond the range of f16.
  for (const auto &[name, value] : before)
    if (name != "optimizer:loss_scale" && name != "optimizer:growth_tracker" &&
        name != "optimizer:skipped") {
      EXPECT_TRUE(at::equal(scaled_.state(name), value)) << name;
    }
  EXPECT_EQ(count("step"), 2);
  EXPECT_EQ(count("skipped"), 1);
  EXPECT_EQ(count("growth_tracker"), 0);
  EXPECT_EQ(scale(), 32768);
  step(1);
  step(1);
  EXPECT_EQ(scale(), 32768);
  step(1);
  EXPECT_EQ(scale(), 65536);
  EXPECT_EQ(count("growth_tracker"), 0);
  EXPECT_EQ(count("step"), 5);
  EXPECT_FALSE(at::equal(scaled_.state("model.0.weight"), before.at("model.0.weight")));
}

} // namespace
} // namespace cgc::test
