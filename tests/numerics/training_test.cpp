// Training: steps of training plans beside LibTorch's autograd and optimizers, from the same start
// and with the same data.
#include "driver/compile.h"
#include "frontend/frontend.h"
#include "passes/train/optimizer_options.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/engine.h"
#include "tests/numerics/test_models.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/script.h>

#include <algorithm>
#include <map>

namespace cgc {
namespace {

/// A model and its optimizer, in cgc's text and as LibTorch's object.
struct TrainingCase {
  std::string name, model;
  std::vector<driver::InputSpec> inputs;
  int64_t labels; ///< Integer inputs are below.
  std::string optimizer;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> torch;
  double clipNorm = 0;
  double averageDecay = 0;
  int64_t steps = 100;
  friend std::ostream &operator<<(std::ostream &os, const TrainingCase &c) { return os << c.name; }
};

/// The dtypes of inputs, outputs and states.
constexpr std::pair<DType, c10::ScalarType> kTypes[] = {
    {DType::F32, at::kFloat}, {DType::I64, at::kLong}, {DType::F16, at::kHalf}};

c10::ScalarType torchType(DType dtype) {
  return std::ranges::find(kTypes, dtype, &std::pair<DType, c10::ScalarType>::first)->second;
}

TensorView viewOf(const at::Tensor &tensor) {
  return {
      tensor.data_ptr(),
      std::ranges::find(kTypes, tensor.scalar_type(), &std::pair<DType, c10::ScalarType>::second)
          ->first,
      DeviceKind::Cpu,
      {tensor.sizes().data(), tensor.sizes().size()},
      {}};
}

/// Later, rounding has grown: it moves a parameter by up to the learning rate where AdamW's moments
/// are near zero, and activations across zero.
constexpr int64_t kComparedStep = 10;

/// Largest difference relative to the largest magnitude of `expected`.
double difference(const at::Tensor &got, const at::Tensor &expected) {
  if (expected.numel() == 0)
    return 0;
  const double scale = std::max(expected.abs().max().item<double>(), 1e-6);
  return (got - expected).abs().max().item<double>() / scale;
}

/// The moments of a parameter, by the ends of the names of their states.
std::map<std::string, at::Tensor> momentsOf(torch::optim::Optimizer &optimizer,
                                            const at::Tensor &parameter) {
  auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end())
    return {};
  if (auto *adamw = dynamic_cast<torch::optim::AdamWParamState *>(found->second.get()))
    return {{":exp_avg", adamw->exp_avg()}, {":exp_avg_sq", adamw->exp_avg_sq()}};
  if (auto *adam = dynamic_cast<torch::optim::AdamParamState *>(found->second.get()))
    return {{":exp_avg", adam->exp_avg()}, {":exp_avg_sq", adam->exp_avg_sq()}};
  if (auto *sgd = dynamic_cast<torch::optim::SGDParamState *>(found->second.get());
      sgd && sgd->momentum_buffer().defined())
    return {{":momentum_buffer", sgd->momentum_buffer()}};
  return {};
}

/// The model in LibTorch, with its optimizer.
struct Reference {
  Reference(const std::string &path, const TrainingCase &c) : module(torch::jit::load(path)) {
    for (const auto &[name, value] : module.named_parameters()) {
      const auto isSame = [&, &value = value](const at::Tensor &other) {
        return other.is_same(value);
      };
      if (!value.requires_grad() || std::ranges::any_of(trained, isSame)) // A tied parameter once.
        continue;
      parameters.emplace(name, value);
      trained.push_back(value);
      // As torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn, updated once before the
      // first step.
      if (c.averageDecay > 0)
        averages.emplace(name, value.detach().clone());
    }
    optimizer = c.torch(trained);
  }
  /// Updates the parameters by their gradients, and the averages.
  void step(const TrainingCase &c) {
    if (c.clipNorm > 0)
      torch::nn::utils::clip_grad_norm_(trained, c.clipNorm);
    optimizer->step();
    for (auto &[name, average] : averages)
      average.lerp_(parameters.at(name).detach(), 1 - c.averageDecay);
  }

  torch::jit::Module module;
  std::map<std::string, at::Tensor> parameters, averages;
  std::vector<at::Tensor> trained;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

/// A compiled training step and a context that runs it.
class TrainingStep {
public:
  /// Compiles the step and gives it a context. `train` has the optimizer and more; without
  /// `batches` there is one bucket, of the sizes of the inputs. With `separate` each tensor has
  /// memory of its own, which is poisoned.
  void compile(const std::string &model, const std::vector<driver::InputSpec> &inputs,
               driver::TrainOptions train, const std::vector<int64_t> &batches = {},
               bool separate = false) {
    path_ = test::trainingModel(model);
    auto root = frontend::importTorchScript(path_, frontend::ImportFor::Training);
    ASSERT_TRUE(root.isOk()) << root.status().message();
    driver::CompileOptions options;
    options.inputs = inputs;
    options.batches = batches;
    options.target = DeviceKind::Cpu;
    options.providerPath = kLibraries;
    options.train = std::move(train);
    options.reusesMemory = !separate;
    ir::Diagnostics diagnostics;
    auto compiled = driver::compile(**root, options, diagnostics);
    ASSERT_TRUE(compiled.isOk()) << compiled.status().message();
    std::vector<std::vector<std::byte>> weights;
    for (const auto &weight : compiled->weights)
      weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
    auto plan = Plan::fromMemory(std::move(compiled->plan), std::move(weights));
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    context_.reset();
    engine_.reset();
    plan_.emplace(*std::move(plan));
    auto engine = Engine::create(*plan_, {.executor = {}, .device = 0, .providerPath = kLibraries});
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    engine_.emplace(*std::move(engine));
    auto context = Context::create(*engine_, {.poisonArena = separate});
    ASSERT_TRUE(context.isOk()) << context.status().message();
    context_.emplace(*std::move(context));
    if (plan_->data().findEntry(kRefreshEntry))
      outputs(kRefreshEntry, {});
  }

  /// Runs an entry and returns its outputs, the loss first.
  std::vector<at::Tensor> outputs(const char *entry, const std::vector<at::Tensor> &inputs) {
    std::vector<TensorView> inputViews, outputViews;
    for (const at::Tensor &input : inputs)
      inputViews.push_back(viewOf(input));
    std::vector<at::Tensor> outputs;
    const std::vector<Bucket> &buckets = plan_->data().findEntry(entry)->buckets;
    const bool isFirst = buckets.size() == 1 || inputs[0].size(0) == buckets[0].inputs[0].sizes[0];
    for (const IoTensor &output : buckets[isFirst ? 0 : 1].outputs)
      outputs.push_back(at::empty(output.sizes, torchType(output.dtype)));
    for (const at::Tensor &output : outputs)
      outputViews.push_back(viewOf(output));
    const Status status = context_->run(entry, inputViews, outputViews);
    EXPECT_TRUE(status.isOk()) << status.message();
    return outputs;
  }

  /// Runs an entry and returns the loss.
  double run(const char *entry, const std::vector<at::Tensor> &inputs) {
    return outputs(entry, inputs)[0].item<double>();
  }

  at::Tensor state(const std::string &name) {
    const auto index = plan_->data().findState(name);
    EXPECT_TRUE(index) << "no state " << name;
    if (!index)
      return {};
    const State &of = plan_->data().states[*index];
    at::Tensor value = at::empty(of.sizes, torchType(of.dtype));
    const Status status = context_->readState(name, viewOf(value));
    EXPECT_TRUE(status.isOk()) << status.message();
    return value;
  }

  inline static const std::string kLibraries = CGC_BINARY_DIR "/lib";
  std::string path_;
  std::optional<Plan> plan_;
  std::optional<Engine> engine_;
  std::optional<Context> context_;
};

std::vector<at::Tensor> randomInputsOf(const std::vector<driver::InputSpec> &specs,
                                       int64_t labels) {
  std::vector<at::Tensor> inputs;
  for (const driver::InputSpec &input : specs)
    inputs.push_back(input.dtype == DType::I64 ? at::randint(labels, input.sizes, at::kLong)
                                               : at::randn(input.sizes));
  return inputs;
}

class Training : public testing::TestWithParam<TrainingCase>, protected TrainingStep {
protected:
  void SetUp() override {
    compile(GetParam().model, GetParam().inputs,
            {.optimizer = GetParam().optimizer, .accumulates = true}, {batch() / 2, batch()});
  }

  static int64_t batch() { return GetParam().inputs[0].sizes[0]; }

  std::vector<at::Tensor> randomInputs() const {
    return randomInputsOf(GetParam().inputs, GetParam().labels);
  }

  void compareStates(const Reference &reference) {
    const torch::NoGradGuard noGrad;
    for (const auto &[name, value] : reference.parameters) {
      if (!value.grad().defined() || !plan_->data().findState(name))
        continue; // Without a path, or the second name of a tied parameter.
      const std::map<std::string, at::Tensor> moments = momentsOf(*reference.optimizer, value);
      // Adam moves a parameter by lr * m / sqrt(v), which rounding decides where both are near
      // zero.
      if (!moments.contains(":exp_avg")) {
        EXPECT_LT(difference(state(name), value), 1e-3) << name;
      } else {
        // In ten steps of a learning rate of 1e-3.
        EXPECT_LT((state(name) - value).abs().max().item<double>(), 3e-3) << name;
        EXPECT_LT((state(name) - value).abs().mean().item<double>(), 1e-4) << name;
      }
      for (const auto &[end, moment] : moments)
        EXPECT_LT(difference(state(name + end), moment), 1e-3) << name << end;
      if (reference.averages.contains(name)) {
        EXPECT_LT(difference(state(name + ":ema"), reference.averages.at(name)), 1e-5) << name;
        EXPECT_GT(difference(state(name + ":ema"), value), 1e-4) << name << " is no average";
      }
    }
    for (const auto &[name, value] : reference.module.named_parameters())
      if (!value.requires_grad()) {
        EXPECT_TRUE(at::equal(state(name), value)) << name;
      }
    for (const auto &[name, value] : reference.module.named_buffers())
      if (plan_->data().findState(name)) {
        EXPECT_LT(difference(state(name).to(at::kFloat), value.to(at::kFloat)), 1e-3) << name;
      }
  }
};

TEST_P(Training, FollowsLibTorch) {
  const TrainingCase &c = GetParam();
  const torch::jit::GraphOptimizerEnabledGuard unoptimized(false); // It would profile and fuse.
  Reference reference(path_, c);
  at::manual_seed(7);
  for (int64_t step = 1; step <= c.steps; ++step) {
    const std::vector<at::Tensor> inputs = randomInputs();
    const double got = run("step", inputs);
    reference.optimizer->zero_grad();
    at::Tensor loss = reference.module.forward({inputs.begin(), inputs.end()}).toTensor();
    loss.backward();
    reference.step(c);
    const double expected = loss.item<double>();
    ASSERT_NEAR(got, expected, (step <= 10 ? 1e-5 : 1e-3) * std::max(1.0, std::abs(expected)))
        << "in step " << step;
    if (step == kComparedStep)
      compareStates(reference);
  }
}

/// Two micro-batches make the step of their mean gradient, as loss / 2 does in PyTorch.
TEST_P(Training, AccumulatesAsLibTorch) {
  const TrainingCase &c = GetParam();
  const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
  Reference reference(path_, c);
  at::manual_seed(7);
  for (int64_t step = 1; step <= kComparedStep; ++step) {
    const std::vector<at::Tensor> inputs = randomInputs();
    reference.optimizer->zero_grad();
    double expected = 0;
    for (int64_t half = 0; half < 2; ++half) {
      std::vector<at::Tensor> micro;
      for (const at::Tensor &input : inputs)
        micro.push_back(input.narrow(0, half * batch() / 2, batch() / 2));
      run(half == 0 ? "gradient.first" : "gradient.next", micro);
      at::Tensor loss = reference.module.forward({micro.begin(), micro.end()}).toTensor() / 2;
      loss.backward();
      expected += loss.item<double>();
    }
    reference.step(c);
    ASSERT_NEAR(run("update", {}), expected, 1e-5 * std::max(1.0, std::abs(expected)))
        << "in step " << step;
  }
  compareStates(reference);
}

/// A step and the update of one micro-batch differ only in the order in which the squares of the
/// clipped gradients' norm are added.
TEST_P(Training, OneMicroBatchIsAStep) {
  const std::vector<at::Tensor> inputs = randomInputs();
  const double loss = run("step", inputs);
  std::map<std::string, at::Tensor> stepped;
  for (const State &one : plan_->data().states)
    if (one.role == StateRole::Parameter || one.role == StateRole::Buffer)
      stepped[one.name] = state(one.name);
  const Status reset = context_->resetStates();
  ASSERT_TRUE(reset.isOk()) << reset.message();
  run("gradient.first", inputs);
  EXPECT_EQ(run("update", {}), loss);
  for (const auto &[name, value] : stepped)
    if (GetParam().clipNorm == 0) {
      EXPECT_TRUE(at::equal(state(name), value)) << name;
    } else {
      EXPECT_LT(difference(state(name), value), 1e-5) << name;
    }
}

TEST_P(Training, EvaluatesWithoutChangingStates) {
  const std::vector<at::Tensor> inputs = randomInputs();
  run("step", inputs);
  std::vector<at::Tensor> before;
  for (const State &one : plan_->data().states)
    before.push_back(state(one.name));
  const double first = run("evaluate", inputs);
  EXPECT_EQ(run("evaluate", inputs), first);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(at::equal(state(plan_->data().states[i].name), before[i]))
        << plan_->data().states[i].name;
}

TEST_P(Training, IsEqualBitByBitWhenRepeated) {
  const std::vector<at::Tensor> inputs = randomInputs();
  std::vector<double> losses;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Status reset = context_->resetStates();
    ASSERT_TRUE(reset.isOk()) << reset.message();
    for (int step = 0; step < 3; ++step)
      losses.push_back(run("step", inputs));
  }
  EXPECT_EQ(losses[0], losses[3]);
  EXPECT_EQ(losses[1], losses[4]);
  EXPECT_EQ(losses[2], losses[5]);
  EXPECT_NE(losses[0], losses[1]) << "the step trains nothing";
}

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
                 {.optimizer = "rule=adamw,lr=0.001", .recompute = recompute});
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
    const driver::TrainOptions options{.optimizer = "rule=adamw,lr=0.001,clip-norm=1,ema=0.9",
                                       .accumulates = true};
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

constexpr const char *kSgd = "rule=sgd,lr=0.05";
constexpr const char *kAdamW = "rule=adamw,lr=0.001,beta1=0.9,beta2=0.98,eps=1e-6,weight-decay=0.2";

/// Steps that compute their batch in micro-batches.
class MicroBatches : public testing::Test {
protected:
  static void start(TrainingStep &step, std::optional<uint64_t> count, const std::string &model,
                    const std::vector<driver::InputSpec> &inputs, const std::string &optimizer) {
    step.compile(model, inputs, {.optimizer = optimizer, .microBatches = count});
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
  start(whole, std::nullopt, "train_transformer", dropping_, kSgd);
  start(halves, 2, "train_transformer", dropping_, kSgd);
  start(quarters, 4, "train_transformer", dropping_, kSgd);
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

using Parameters = std::vector<at::Tensor>;

template <double Lr> std::unique_ptr<torch::optim::Optimizer> sgd(const Parameters &parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(Lr));
}
std::unique_ptr<torch::optim::Optimizer> momentum(const Parameters &parameters) {
  return std::make_unique<torch::optim::SGD>(
      parameters, torch::optim::SGDOptions(0.02).momentum(0.9).nesterov(true).weight_decay(0.01));
}
std::unique_ptr<torch::optim::Optimizer> dampened(const Parameters &parameters) {
  return std::make_unique<torch::optim::SGD>(
      parameters, torch::optim::SGDOptions(0.02).momentum(0.9).dampening(0.25));
}
std::unique_ptr<torch::optim::Optimizer> adam(const Parameters &parameters) {
  return std::make_unique<torch::optim::Adam>(parameters,
                                              torch::optim::AdamOptions(1e-3).betas({0.9, 0.99}));
}
std::unique_ptr<torch::optim::Optimizer> adamW(const Parameters &parameters) {
  return std::make_unique<torch::optim::AdamW>(
      parameters, torch::optim::AdamWOptions(1e-3).betas({0.9, 0.98}).eps(1e-6).weight_decay(0.2));
}

const std::vector<driver::InputSpec> kVectors = {{"x", DType::F32, {4, 16}},
                                                 {"label", DType::I64, {4}}},
                                     kImages = {{"x", DType::F32, {4, 3, 32, 32}},
                                                {"label", DType::I64, {4}}},
                                     kPairs = {{"image", DType::F32, {4, 3, 32, 32}},
                                               {"text", DType::I64, {4, 16}}};

INSTANTIATE_TEST_SUITE_P(
    Models, Training,
    testing::Values(
        TrainingCase{"LinearSgd",
                     "train_linear",
                     {{"x", DType::F32, {4, 32}}, {"label", DType::I64, {4}}},
                     32,
                     kSgd,
                     sgd<0.05>},
        TrainingCase{"MlpMomentum", "train_mlp", kVectors, 10,
                     "rule=sgd,lr=0.02,momentum=0.9,nesterov=true,weight-decay=0.01", momentum},
        TrainingCase{"MlpDampened", "train_mlp", kVectors, 10,
                     "rule=sgd,lr=0.02,momentum=0.9,dampening=0.25", dampened},
        TrainingCase{"MlpAdam", "train_mlp", kVectors, 10, "rule=adam,lr=0.001,beta2=0.99", adam},
        TrainingCase{"MlpClipped", "train_mlp", kVectors, 10,
                     std::string(kAdamW) + ",clip-norm=0.5", adamW, 0.5},
        TrainingCase{"MlpAverages", "train_mlp", kVectors, 10,
                     "rule=sgd,lr=0.02,momentum=0.9,nesterov=true,weight-decay=0.01,ema=0.9",
                     momentum, 0, 0.9},
        TrainingCase{"TiedAdamW",
                     "train_tied",
                     {{"x", DType::F32, {4, 8}}, {"tokens", DType::I64, {4}}},
                     20,
                     kAdamW,
                     adamW},
        TrainingCase{"ConvolutionsMomentum", "train_convolutions", kImages, 10,
                     "rule=sgd,lr=0.02,momentum=0.9,nesterov=true,weight-decay=0.01", momentum},
        TrainingCase{"ResNet18Sgd",
                     "train_resnet18",
                     {{"x", DType::F32, {8, 3, 64, 64}}, {"label", DType::I64, {8}}},
                     10,
                     "rule=sgd,lr=0.001",
                     sgd<0.001>},
        TrainingCase{"ClipAdamW", "train_clip", kPairs, 512, kAdamW, adamW},
        TrainingCase{"ClipResNetSgd",
                     "train_clip_resnet",
                     {{"image", DType::F32, {16, 3, 64, 64}}, {"text", DType::I64, {16, 16}}},
                     512,
                     "rule=sgd,lr=0.0001",
                     sgd<0.0001>},
        TrainingCase{"SigLipAdamW", "train_siglip", kPairs, 512, kAdamW, adamW},
        TrainingCase{"CoCaAdamW", "train_coca", kPairs, 512, kAdamW, adamW}),
    [](const auto &info) { return info.param.name; });

/// The factors that the device computes, and that the host does for `cgc train --against`, are
/// those of torch.optim.lr_scheduler: LinearLR, CosineAnnealingLR and StepLR, after LinearLR from 0
/// for the warm-up. Behind its end a schedule keeps its last factor.
TEST(Schedule, FactorsAreThoseOfPyTorch) {
  using passes::LearningRateSchedule;
  struct Case {
    std::string text;
    passes::OptimizerOptions options;
    std::vector<double> factors;
  };
  const double third = 1.0 / 3, s3 = std::sqrt(3.0) / 2;
  const auto cosine = [](double x) { return 0.1 + 0.9 * (1 + x) / 2; };
  const Case kCases[] = {
      {"warmup=3", {.warmup = 3}, {third, 2 * third, 1, 1, 1}},
      {"schedule=linear,warmup=2,steps=7,final-factor=0.25",
       {.schedule = LearningRateSchedule::Linear, .warmup = 2, .steps = 7, .finalFactor = 0.25},
       {0.5, 1, 1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.25}},
      {"schedule=cosine,steps=6,final-factor=0.1",
       {.schedule = LearningRateSchedule::Cosine, .steps = 6, .finalFactor = 0.1},
       {1, cosine(s3), cosine(0.5), cosine(0), cosine(-0.5), cosine(-s3), 0.1, 0.1}},
      {"schedule=step,warmup=1,step-size=2,step-factor=0.5",
       {.schedule = LearningRateSchedule::Step, .warmup = 1, .stepSize = 2, .stepFactor = 0.5},
       {1, 1, 0.5, 0.5, 0.25, 0.25, 0.125}}};
  for (const Case &c : kCases) {
    SCOPED_TRACE(c.text);
    constexpr double kLr = 0.001;
    TrainingStep step;
    step.compile("train_mlp", kVectors,
                 {.optimizer = "rule=sgd,lr=0.001,keep-gradients=true," + c.text});
    const std::vector<IoTensor> &outputs = step.plan_->data().findEntry("step")->buckets[0].outputs;
    const auto gradient =
        std::ranges::find(outputs, "gradient.model.0.weight", &IoTensor::name) - outputs.begin();
    ASSERT_LT(gradient, std::ssize(outputs));
    at::manual_seed(7);
    for (size_t i = 0; i < c.factors.size(); ++i) {
      const at::Tensor before = step.state("model.0.weight");
      const at::Tensor g = step.outputs("step", randomInputsOf(kVectors, 10))[gradient];
      const at::Tensor moved = before - step.state("model.0.weight");
      EXPECT_NEAR((moved * g).sum().item<double>() / (g * g).sum().item<double>() / kLr,
                  c.factors[i], 1e-2)
          << "in step " << i + 1;
      EXPECT_NEAR(c.options.factorAt(i + 1), c.factors[i], 1e-12) << "in step " << i + 1;
    }
  }
}

class LossScale : public testing::Test {
protected:
  void SetUp() override {
    const std::string options = std::string(kAdamW) + ",clip-norm=0.5,ema=0.9,keep-gradients=true";
    scaled_.compile(
        "train_mlp", kVectors,
        {.optimizer = options + ",growth-interval=3", .autocast = DType::F16, .accumulates = true});
    plain_.compile("train_mlp", kVectors, {.optimizer = options, .accumulates = true});
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
  scaled_.compile("train_mlp", kVectors, {.optimizer = options, .autocast = DType::F16});
  plain_.compile("train_mlp", kVectors, {.optimizer = options});
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
} // namespace cgc
