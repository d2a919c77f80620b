// Steps for cuda of convolutional networks under autocast, by the reference executor, beside those
// for the CPU, in which every convolution is LibTorch's on images with the channels second.
#include "tests/numerics/training_step.h"

namespace cgc::test {
namespace {

struct ConvolutionCase {
  std::string name, model;
  std::vector<driver::InputSpec> inputs;
  int64_t labels; ///< Integer inputs are below.
  DType autocast;
  friend std::ostream &operator<<(std::ostream &os, const ConvolutionCase &c) {
    return os << c.name;
  }
};

class TrainingOnCuda : public testing::TestWithParam<ConvolutionCase> {
protected:
  static void compile(TrainingStep &step, DeviceKind target) {
    const ConvolutionCase &c = GetParam();
    step.compile(c.model, c.inputs,
                 {.optimizer = optimizerOf("rule=sgd,lr=1"), .autocast = c.autocast}, {},
                 /*separate=*/false, target);
  }
};

/// The steps have a learning rate of 1, so that parameters move by their gradients.
TEST_P(TrainingOnCuda, GradientsAreThoseOfTheCpu) {
  TrainingStep onCuda, onCpu;
  compile(onCuda, DeviceKind::Cuda);
  compile(onCpu, DeviceKind::Cpu);
  at::manual_seed(3);
  const std::vector<at::Tensor> inputs = randomInputsOf(GetParam().inputs, GetParam().labels);
  std::map<std::string, at::Tensor> before;
  for (const State &state : onCpu.plan_->data().states)
    if (state.role == StateRole::Parameter)
      before[state.name] = onCpu.state(state.name);
  ASSERT_FALSE(before.empty());
  const double expected = onCpu.run("step", inputs);
  EXPECT_NEAR(onCuda.run("step", inputs), expected, 0.01 * std::abs(expected));
  for (const auto &[name, start] : before) {
    const at::Tensor wanted = onCpu.state(name) - start, got = onCuda.state(name) - start;
    const double error = (got - wanted).norm().item<double>(), size = wanted.norm().item<double>();
    EXPECT_LT(error, 0.1 * size + 1e-5) << name; // A batch norm cancels a bias before it.
  }
  const double evaluated = onCpu.run("evaluate", inputs);
  EXPECT_NEAR(onCuda.run("evaluate", inputs), evaluated, 0.05 * std::abs(evaluated));
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainingOnCuda,
    testing::Values(ConvolutionCase{"Convolutions",
                                    "train_convolutions",
                                    {{"x", DType::F32, {8, 3, 16, 16}}, {"label", DType::I64, {8}}},
                                    10,
                                    DType::F16},
                    ConvolutionCase{"ResNet18",
                                    "train_resnet18",
                                    {{"x", DType::F32, {8, 3, 64, 64}}, {"label", DType::I64, {8}}},
                                    10,
                                    DType::F16},
                    ConvolutionCase{
                        "ClipResNet",
                        "train_clip_resnet",
                        {{"image", DType::F32, {16, 3, 64, 64}}, {"text", DType::I64, {16, 16}}},
                        512,
                        DType::F16}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cgc::test
