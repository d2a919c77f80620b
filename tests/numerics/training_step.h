// TrainingStep: compiles a small training step and runs it, for the tests of training.
#pragma once

#include "driver/compile.h"
#include "frontend/frontend.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/engine.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/optimizer_of.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace cgc::test {

/// The dtypes of inputs, outputs and states.
inline constexpr std::pair<DType, c10::ScalarType> kTypes[] = {
    {DType::F32, at::kFloat}, {DType::I64, at::kLong}, {DType::F16, at::kHalf}};

inline TensorView viewOf(const at::Tensor &tensor) {
  return {
      tensor.data_ptr(),
      std::ranges::find(kTypes, tensor.scalar_type(), &std::pair<DType, c10::ScalarType>::second)
          ->first,
      DeviceKind::Cpu,
      {tensor.sizes().data(), tensor.sizes().size()},
      {}};
}

/// Largest difference relative to the largest magnitude of `expected`.
inline double difference(const at::Tensor &got, const at::Tensor &expected) {
  if (expected.numel() == 0)
    return 0;
  const double scale = std::max(expected.abs().max().item<double>(), 1e-6);
  return (got - expected).abs().max().item<double>() / scale;
}

/// A compiled training step and a context that runs it.
class TrainingStep {
public:
  /// Compiles the step and gives it a context. `train` has the optimizer and more; without
  /// `batches` there is one bucket, of the sizes of the inputs. With `separate` each tensor has
  /// memory of its own, which is poisoned. A step for cuda runs on the reference executor.
  void compile(const std::string &model, const std::vector<driver::InputSpec> &inputs,
               driver::TrainOptions train, const std::vector<int64_t> &batches = {},
               bool separate = false, DeviceKind target = DeviceKind::Cpu) {
    path_ = trainingModel(model);
    auto root = frontend::importTorchScript(path_, frontend::ImportFor::Training);
    ASSERT_TRUE(root.isOk()) << root.status().message();
    driver::CompileOptions options;
    options.inputs = inputs;
    options.batches = batches;
    options.target = target;
    options.libraryFolder = kLibraries;
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
    EngineOptions engineOptions{.executor = {}, .device = 0, .providerPath = kLibraries};
    if (target == DeviceKind::Cuda)
      engineOptions.executor = ExecutorKind::Reference;
    auto engine = Engine::create(*plan_, engineOptions);
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

  inline static const std::string kLibraries = buildDir() / "lib";
  std::string path_;
  std::optional<Plan> plan_;
  std::optional<Engine> engine_;
  std::optional<Context> context_;
};

/// Random tensors for the inputs; integers are below `labels`.
inline std::vector<at::Tensor> randomInputsOf(const std::vector<driver::InputSpec> &specs,
                                              int64_t labels) {
  std::vector<at::Tensor> inputs;
  for (const driver::InputSpec &input : specs)
    inputs.push_back(input.dtype == DType::I64 ? at::randint(labels, input.sizes, at::kLong)
                                               : at::randn(input.sizes));
  return inputs;
}

inline constexpr const char *kAdamW =
    "rule=adamw,lr=0.001,beta1=0.9,beta2=0.98,eps=1e-6,weight-decay=0.2";
/// The inputs of train_mlp.
inline const std::vector<driver::InputSpec> kVectors = {{"x", DType::F32, {4, 16}},
                                                        {"label", DType::I64, {4}}};

} // namespace cgc::test
