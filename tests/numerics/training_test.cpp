// Training: steps of training plans beside LibTorch's autograd and optimizers, from the same start
// and with the same data.
#include "passes/train/optimizer_options.h"
#include "tests/numerics/training_step.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/script.h>

#include <map>

namespace cgc::test {
namespace {

/// Later, rounding has grown: it moves a parameter by up to the learning rate where AdamW's moments
/// are near zero, and activations across zero.
constexpr int64_t kComparedStep = 10;

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
  /// The steps until a ReLU may meet a value that LibTorch's convolutions round to either side of
  /// zero, by their instructions, as soon happens in a deep network with batch norm.
  int64_t exactSteps = kComparedStep;

  /// A ReLU on the other side of zero moves the loss by some 1e-6 in LibTorch itself, and by more
  /// than 1e-5 on some processors.
  double tolerance(int64_t step, double loss) const {
    const double relative = step <= exactSteps ? 1e-5 : step <= kComparedStep ? 1e-4 : 1e-3;
    return relative * std::max(1.0, std::abs(loss));
  }
  friend std::ostream &operator<<(std::ostream &os, const TrainingCase &c) { return os << c.name; }
};

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

class Training : public testing::TestWithParam<TrainingCase>, protected TrainingStep {
protected:
  void SetUp() override {
    compile(GetParam().model, GetParam().inputs,
            {.optimizer = optimizerOf(GetParam().optimizer), .accumulates = true},
            {batch() / 2, batch()});
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
    ASSERT_NEAR(got, expected, c.tolerance(step, expected)) << "in step " << step;
    if (step == c.exactSteps)
      compareStates(reference);
  }
}

/// Two micro-batches make the step of their mean gradient, as loss / 2 does in PyTorch.
TEST_P(Training, AccumulatesAsLibTorch) {
  const TrainingCase &c = GetParam();
  const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
  Reference reference(path_, c);
  at::manual_seed(7);
  for (int64_t step = 1; step <= c.exactSteps; ++step) {
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
    ASSERT_NEAR(run("update", {}), expected, c.tolerance(step, expected)) << "in step " << step;
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

constexpr const char *kSgd = "rule=sgd,lr=0.05";

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

const std::vector<driver::InputSpec> kImages = {{"x", DType::F32, {4, 3, 32, 32}},
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
        TrainingCase{"WeightNormMomentum", "train_weight_norm", kVectors, 10,
                     "rule=sgd,lr=0.02,momentum=0.9,nesterov=true,weight-decay=0.01", momentum},
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
                     sgd<0.0001>,
                     /*clipNorm=*/0,
                     /*averageDecay=*/0,
                     /*steps=*/100,
                     /*exactSteps=*/5},
        TrainingCase{"SigLipAdamW", "train_siglip", kPairs, 512, kAdamW, adamW},
        TrainingCase{"CoCaAdamW", "train_coca", kPairs, 512, kAdamW, adamW}),
    [](const auto &info) { return info.param.name; });

/// The factors that the device computes, and that the host does for `cgc train --against`, are
/// those of torch.optim.lr_scheduler: LinearLR, CosineAnnealingLR and StepLR, after LinearLR from 0
/// for the warm-up. After its end a schedule keeps its last factor.
TEST(Schedule, FactorsAreThoseOfPyTorch) {
  struct Case {
    std::string text;
    OptimizerOptions options;
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
                 {.optimizer = optimizerOf("rule=sgd,lr=0.001,keep-gradients=true," + c.text)});
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

} // namespace
} // namespace cgc::test
