// Training in less memory, and in memory of each tensor's own: recomputation, micro-batches and
// separate buffers change neither losses nor states.
#include "tests/numerics/training_step.h"

namespace cgc::test {
namespace {

/// The losses of steps, and the states after them.
struct Trace {
  std::vector<double> losses;
  std::vector<std::string> names;
  std::vector<at::Tensor> states;
  uint64_t arenaBytes = 0;
};

/// Recomputed activations are those of the forward pass bit by bit, dropout included, and need less
/// memory.
TEST(Recomputation, ChangesNothingButMemory) {
  const std::vector<driver::InputSpec> inputs = {{"x", DType::F32, {32, 64, 128}},
                                                 {"label", DType::I64, {32}}};
  at::manual_seed(7);
  const std::vector<at::Tensor> values = randomInputsOf(inputs, 10);
  const auto trace = [&](const std::string &recompute) {
    Trace result;
    TrainingStep step;
    step.compile("train_transformer", inputs,
                 {.optimizer = optimizerOf("rule=adamw,lr=0.001"), .recompute = recompute});
    if (testing::Test::HasFatalFailure())
      return result;
    for (int i = 0; i < 2; ++i)
      result.losses.push_back(step.run("step", values));
    for (const State &one : step.plan_->data().states) {
      result.names.push_back(one.name);
      result.states.push_back(step.state(one.name));
    }
    result.arenaBytes = step.plan_->data().findEntry("step")->buckets[0].arenaBytes;
    return result;
  };
  const Trace kept = trace(""), cheap = trace("cheap"), blocks = trace("blocks");
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  EXPECT_NE(kept.losses[0], kept.losses[1]) << "the step trains nothing";
  for (const Trace *again : {&cheap, &blocks}) {
    EXPECT_EQ(again->losses, kept.losses);
    ASSERT_EQ(again->states.size(), kept.states.size());
    for (size_t i = 0; i < kept.states.size(); ++i)
      EXPECT_TRUE(at::equal(again->states[i], kept.states[i])) << kept.names[i];
  }
  EXPECT_LT(cheap.arenaBytes, kept.arenaBytes);
  EXPECT_LT(blocks.arenaBytes, cheap.arenaBytes);
}

/// Nothing reads memory before it is written, and no buffer ends too early: memory of each tensor's
/// own, poisoned, gives the same bits.
TEST(SeparateBuffers, GiveTheSameBits) {
  const std::vector<driver::InputSpec> images = {{"image", DType::F32, {4, 3, 32, 32}},
                                                 {"text", DType::I64, {4, 16}}},
                                       rows = {{"x", DType::F32, {4, 64, 128}},
                                               {"label", DType::I64, {4}}};
  for (const auto &[model, inputs] :
       {std::pair("train_clip", images), {"train_transformer", rows}}) {
    SCOPED_TRACE(model);
    const driver::TrainOptions options{
        .optimizer = optimizerOf("rule=adamw,lr=0.001,clip-norm=1,ema=0.9"), .accumulates = true};
    TrainingStep shared, separate;
    shared.compile(model, inputs, options);
    separate.compile(model, inputs, options, {}, /*separate=*/true);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    EXPECT_GT(separate.plan_->data().findEntry("step")->buckets[0].arenaBytes,
              shared.plan_->data().findEntry("step")->buckets[0].arenaBytes);
    at::manual_seed(7);
    for (const char *entry : {"step", "gradient.first", "gradient.next", "update", "step"}) {
      const std::vector<at::Tensor> values =
          entry == std::string("update") ? std::vector<at::Tensor>() : randomInputsOf(inputs, 10);
      EXPECT_EQ(separate.run(entry, values), shared.run(entry, values)) << entry;
    }
    for (const State &one : shared.plan_->data().states)
      EXPECT_TRUE(at::equal(separate.state(one.name), shared.state(one.name))) << one.name;
  }
}

constexpr const char *kPlainSgd = "rule=sgd,lr=0.05";

/// Steps that compute their batch in micro-batches.
class MicroBatches : public testing::Test {
protected:
  static void start(TrainingStep &step, std::optional<uint64_t> count, const std::string &model,
                    const std::vector<driver::InputSpec> &inputs, const std::string &optimizer) {
    step.compile(model, inputs, {.optimizer = optimizerOf(optimizer), .microBatches = count});
  }
  static void setState(TrainingStep &step, const std::string &name, at::Tensor value) {
    value = value.contiguous();
    const Status status = step.context_->writeState(name, viewOf(value));
    ASSERT_TRUE(status.isOk()) << status.message();
  }
  static uint64_t arenaBytes(const TrainingStep &step) {
    return step.plan_->data().findEntry("step")->buckets[0].arenaBytes;
  }

  const std::vector<driver::InputSpec> dropping_ = {{"x", DType::F32, {32, 64, 128}},
                                                    {"label", DType::I64, {32}}};
};

/// The losses compare all pairs of the batch, as in one step.
class MicroBatchesOfPairs : public MicroBatches,
                            public testing::WithParamInterface<const char *> {};

TEST_P(MicroBatchesOfPairs, MakeTheStepOfTheBatch) {
  const std::vector<driver::InputSpec> inputs = {{"image", DType::F32, {8, 3, 32, 32}},
                                                 {"text", DType::I64, {8, 16}}};
  const std::string optimizer = "rule=sgd,lr=0.05,momentum=0.9,keep-gradients=true";
  TrainingStep whole;
  start(whole, std::nullopt, GetParam(), inputs, optimizer);
  for (const uint64_t count : {2, 4}) {
    const std::string context = std::to_string(count) + " micro-batches, ";
    TrainingStep parts;
    start(parts, count, GetParam(), inputs, optimizer);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(whole.context_->resetStates().isOk());
    at::manual_seed(7);
    for (int i = 0; i < 5; ++i) {
      const std::vector<at::Tensor> values = randomInputsOf(inputs, 512),
                                    expected = whole.outputs("step", values),
                                    got = parts.outputs("step", values);
      ASSERT_EQ(got.size(), expected.size());
      EXPECT_LT(difference(got[0], expected[0]), 1e-5) << context << i;
      for (size_t output = 1; i == 0 && output < got.size(); ++output)
        EXPECT_LT(difference(got[output], expected[output]), 1e-5)
            << context << parts.plan_->data().findEntry("step")->buckets[0].outputs[output].name;
    }
    for (const State &one : whole.plan_->data().states)
      EXPECT_LT(difference(parts.state(one.name), whole.state(one.name)), 1e-5)
          << context << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MicroBatchesOfPairs,
                         testing::Values("train_clip", "train_siglip", "train_coca"),
                         [](const auto &info) { return std::string(info.param); });

TEST_F(MicroBatches, NeedLessMemory) {
  TrainingStep whole, halves, quarters;
  start(whole, std::nullopt, "train_transformer", dropping_, kPlainSgd);
  start(halves, 2, "train_transformer", dropping_, kPlainSgd);
  start(quarters, 4, "train_transformer", dropping_, kPlainSgd);
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  EXPECT_LT(arenaBytes(halves), arenaBytes(whole) * 0.65);
  EXPECT_LT(arenaBytes(quarters), arenaBytes(whole) * 0.4);
}

/// The backward pass draws the masks of the forward pass again: along the gradient, the loss grows
/// by its norm.
TEST_F(MicroBatches, DropTheSameElementsInTheBackwardPass) {
  at::manual_seed(7);
  const std::vector<at::Tensor> values = randomInputsOf(dropping_, 10);
  TrainingStep step;
  start(step, 4, "train_transformer", dropping_, "rule=sgd,lr=0,keep-gradients=true");
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  const std::vector<at::Tensor> outputs = step.outputs("step", values);
  const std::vector<IoTensor> &all = step.plan_->data().findEntry("step")->buckets[0].outputs;
  double square = 0;
  for (size_t i = 1; i < outputs.size(); ++i)
    square += outputs[i].square().sum().item<double>();
  const auto lossAt = [&](double distance) {
    EXPECT_TRUE(step.context_->resetStates().isOk()); // And the random offset.
    for (size_t i = 1; i < outputs.size(); ++i) {
      const std::string name = all[i].name.substr(std::string("gradient.").size());
      setState(step, name, step.state(name) + outputs[i] * (distance / std::sqrt(square)));
    }
    return step.run("step", values);
  };
  const double slope = (lossAt(1e-2) - lossAt(-1e-2)) / 2e-2;
  EXPECT_NEAR(slope, std::sqrt(square), 1e-3 * std::sqrt(square));
}

/// States written to another context continue bit by bit, random numbers included.
TEST_F(MicroBatches, ContinueBitByBit) {
  at::manual_seed(7);
  const std::vector<at::Tensor> values = randomInputsOf(dropping_, 10);
  TrainingStep first, second;
  start(first, 4, "train_transformer", dropping_, kAdamW);
  start(second, 4, "train_transformer", dropping_, kAdamW);
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  const double before = first.run("step", values);
  for (const State &one : first.plan_->data().states)
    setState(second, one.name, first.state(one.name));
  const double expected = first.run("step", values);
  EXPECT_EQ(second.run("step", values), expected);
  EXPECT_NE(before, expected) << "the step trains nothing";
  for (const State &one : first.plan_->data().states)
    EXPECT_TRUE(at::equal(second.state(one.name), first.state(one.name))) << one.name;
}

} // namespace
} // namespace cgc::test
