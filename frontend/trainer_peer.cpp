// TrainerPeer: LibTorch's own training of a module, which `cgc train` compares with a plan's.
#include "frontend/convert.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "frontend/model.h"
#include "runtime/script/results.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace cgc::frontend {
namespace {

/// While it exists, LibTorch casts the inputs of ops on `device` by its lists.
class Autocast final {
public:
  Autocast(c10::DeviceType device, std::optional<DType> dtype)
      : device_(device), enabled_(dtype.has_value()) {
    if (!enabled_)
      return;
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, toScalarType(*dtype));
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast &) = delete;
  Autocast &operator=(const Autocast &) = delete;
  ~Autocast() {
    if (!enabled_)
      return;
    if (at::autocast::decrement_nesting() == 0)
      at::autocast::clear_cache(); // It holds casts of the parameters before the update.
    at::autocast::set_autocast_enabled(device_, false);
  }

private:
  c10::DeviceType device_;
  bool enabled_;
};

class TorchTrainer final : public TrainerPeer {
public:
  TorchTrainer(LoadedModel model, TrainerPeerOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}

  /// Finds the states in the module and makes the optimizer.
  Status create() {
    const auto method = model_.module.find_method(options_.method);
    if (!method)
      return {Code::Usage, "the model has no method '" + options_.method + "'"};
    const size_t expected = method->function().getSchema().arguments().size() - 1;
    if (options_.inputs != expected)
      return {Code::Usage, "'" + options_.method + "' takes " + std::to_string(expected) +
                               " inputs, and the plan's step " + std::to_string(options_.inputs)};
    std::map<std::string, at::Tensor> tensors;
    for (const auto &[name, tensor] : model_.module.named_parameters())
      tensors.emplace(name, tensor);
    for (const auto &[name, tensor] : model_.module.named_buffers())
      tensors.emplace(name, tensor);
    for (const auto &[name, view] : options_.states) {
      const auto found = tensors.find(name);
      if (found == tensors.end())
        return {Code::Usage, "the plan has a state '" + name + "', and the model does not"};
      const at::Tensor &tensor = found->second;
      if (tensor.sizes() != at::IntArrayRef(view.sizes.data(), view.sizes.size()) ||
          tensor.scalar_type() != toScalarType(view.dtype))
        return {Code::Usage, "'" + name + "' has another type in the model than in the plan"};
      states_.emplace(name, tensor);
    }
    makeOptimizer();
    return Status::ok();
  }

  Status write(const std::string &name, const TensorView &from) override {
    return guarded(Code::Failed, [&] {
      const at::NoGradGuard noGrad;
      states_.at(name).copy_(toTensor(from, model_.target));
      return Status::ok();
    });
  }

  Result<double> step(std::span<const TensorView> inputs, std::span<const double> rates) override {
    double loss = 0;
    const Status status = guarded(Code::Failed, [&]() -> Status {
      const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
      const Tf32 rounding(model_.target.tf32);
      for (auto [group, rate] : llvm::zip_equal(optimizer_->param_groups(), rates))
        group.options().set_lr(rate);
      optimizer_->zero_grad();
      const at::Tensor result = forward(inputs);
      result.backward();
      clip();
      optimizer_->step();
      const at::NoGradGuard noGrad;
      for (const PeerOptimizer::Clamp &clamp : options_.optimizer.clamps)
        states_.at(clamp.parameter).clamp_(clamp.min, clamp.max);
      loss = result.item<double>();
      return Status::ok();
    });
    if (!status.isOk())
      return status.withContext("LibTorch, " + options_.method);
    return loss;
  }

private:
  at::Tensor forward(std::span<const TensorView> inputs) {
    const Autocast autocast(model_.target.device.type(), options_.autocast);
    std::vector<c10::IValue> arguments;
    for (const TensorView &input : inputs)
      arguments.emplace_back(toTensor(input, model_.target));
    std::vector<at::Tensor> results;
    script::collectTensors(model_.module.get_method(options_.method)(std::move(arguments)),
                           results);
    TORCH_CHECK(options_.loss < results.size(), "the method returns ", results.size(), " tensors");
    return results[options_.loss];
  }

  void clip() {
    const PeerOptimizer &optimizer = options_.optimizer;
    if (optimizer.clipValue > 0)
      torch::nn::utils::clip_grad_value_(trained_, optimizer.clipValue);
    if (optimizer.clipNorm > 0)
      torch::nn::utils::clip_grad_norm_(trained_, optimizer.clipNorm);
  }

  void makeOptimizer() {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const PeerOptimizer::Group &group : options_.optimizer.groups) {
      std::vector<at::Tensor> parameters;
      for (const std::string &name : group.parameters)
        parameters.push_back(states_.at(name));
      trained_.insert(trained_.end(), parameters.begin(), parameters.end());
      groups.emplace_back(std::move(parameters), numbers(group.weightDecay));
    }
    switch (options_.optimizer.rule) {
    case PeerOptimizer::Rule::Sgd:
      optimizer_ = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0));
      break;
    case PeerOptimizer::Rule::Adam:
      optimizer_ = std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions());
      break;
    case PeerOptimizer::Rule::AdamW:
      optimizer_ = std::make_unique<torch::optim::AdamW>(groups, torch::optim::AdamWOptions());
      break;
    }
  }

  /// The options of a group. Its learning rate is set in each step.
  std::unique_ptr<torch::optim::OptimizerOptions> numbers(double weightDecay) const {
    const PeerOptimizer &optimizer = options_.optimizer;
    const auto adam = [&](auto options) {
      options.betas({optimizer.beta1, optimizer.beta2}).eps(optimizer.eps);
      options.weight_decay(weightDecay);
      return std::make_unique<decltype(options)>(options);
    };
    switch (optimizer.rule) {
    case PeerOptimizer::Rule::Sgd: {
      torch::optim::SGDOptions options(0);
      options.momentum(optimizer.momentum).dampening(optimizer.dampening);
      options.nesterov(optimizer.nesterov).weight_decay(weightDecay);
      return std::make_unique<torch::optim::SGDOptions>(options);
    }
    case PeerOptimizer::Rule::Adam:
      return adam(torch::optim::AdamOptions());
    case PeerOptimizer::Rule::AdamW:
      return adam(torch::optim::AdamWOptions());
    }
    return nullptr;
  }

  LoadedModel model_;
  TrainerPeerOptions options_;
  std::map<std::string, at::Tensor> states_;
  std::vector<at::Tensor> trained_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

} // namespace

Result<std::unique_ptr<TrainerPeer>> loadTrainerPeer(const std::string &path, DeviceKind device,
                                                     const TrainerPeerOptions &options) {
  CGC_ASSIGN_OR_RETURN(LoadedModel model, loadModel(path, device, {}, /*tf32=*/false));
  auto trainer = std::make_unique<TorchTrainer>(std::move(model), options);
  CGC_TRY(guarded(Code::Failed, [&] { return trainer->create(); }).withContext(path));
  return std::unique_ptr<TrainerPeer>(std::move(trainer));
}

} // namespace cgc::frontend
