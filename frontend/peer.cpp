// Peers: LibTorch's own ways to run a method, timed by `cgc bench` for comparison with a plan.
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "frontend/model.h"
#include "runtime/script/results.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

namespace cgc::frontend {
namespace {

/// Shapes for which one method is fused; further shapes run without fusion.
constexpr size_t kMaxShapes = 20;

class TorchPeer final : public Peer {
public:
  TorchPeer(torch::jit::Method method, bool optimizes, bool tf32, std::vector<at::Tensor> inputs)
      : method_(std::move(method)), optimizes_(optimizes), tf32_(tf32),
        sources_(std::move(inputs)) {}

  Status run(bool copies) override {
    return guarded(Code::Failed, [&] {
      c10::InferenceMode inference;
      torch::jit::GraphOptimizerEnabledGuard optimizer(optimizes_);
      const Tf32 rounding(tf32_);
      std::vector<at::Tensor> &inputs = copies ? inputs_ : sources_;
      if (copies && inputs.empty())
        for (const at::Tensor &source : sources_)
          inputs.push_back(source.clone());
      for (size_t i = 0; copies && i < inputs.size(); ++i)
        inputs[i].copy_(sources_[i], /*non_blocking=*/true);
      std::vector<at::Tensor> outputs;
      script::collectTensors(method_(std::vector<c10::IValue>(inputs.begin(), inputs.end())),
                             outputs);
      for (size_t i = 0; copies && i < outputs.size(); ++i) {
        if (results_.size() == i)
          results_.push_back(outputs[i].clone());
        results_[i].copy_(outputs[i], /*non_blocking=*/true);
      }
      return Status::ok();
    });
  }

private:
  torch::jit::Method method_;
  bool optimizes_, tf32_;
  std::vector<at::Tensor> sources_, inputs_, results_;
};

class TorchPeers final : public Peers {
public:
  explicit TorchPeers(LoadedModel model) : model_(std::move(model)) {
    // Applies to the whole process, whose JIT runs nothing else. Each shape is specialized and
    // fused separately, instead of one kernel for many shapes.
    torch::jit::FusionStrategy strategy = {{torch::jit::FusionBehavior::STATIC, kMaxShapes}};
    torch::jit::setFusionStrategy(strategy);
  }

  Result<std::unique_ptr<Peer>> prepare(PeerKind kind, const std::string &name,
                                        std::span<const TensorView> inputs) override {
    std::unique_ptr<Peer> peer;
    Status status = guarded(Code::Failed, [&]() -> Status {
      torch::jit::Module module = kind == PeerKind::Frozen ? frozen() : model_.module;
      auto method = module.find_method(name);
      if (!method)
        return Status(Code::Usage,
                      "the model has no such method; an entry group is none: compare takes "
                      "--entry-group, and bench measures it without --against");
      const size_t expected = method->function().getSchema().arguments().size() - 1;
      if (inputs.size() != expected)
        return Status(Code::Usage, "the method takes " + std::to_string(expected) +
                                       " inputs, not " + std::to_string(inputs.size()));
      c10::InferenceMode inference;
      std::vector<at::Tensor> tensors;
      for (const TensorView &input : inputs)
        tensors.push_back(toTensor(input, model_.target));
      peer = std::make_unique<TorchPeer>(*method, kind == PeerKind::Frozen, model_.target.tf32,
                                         std::move(tensors));
      return Status::ok();
    });
    if (!status.isOk())
      return status.withContext("LibTorch, " + name);
    return peer;
  }

private:
  /// Freezes all methods at once and once for all callers: freezing a ViT-L-14 takes seconds.
  torch::jit::Module &frozen() {
    if (frozen_)
      return *frozen_;
    std::vector<std::string> methods, others;
    for (const torch::jit::Method &method : model_.module.get_methods()) {
      methods.push_back(method.name());
      if (method.name() != "forward")
        others.push_back(method.name());
    }
    model_.module.eval();
    torch::jit::Module module = torch::jit::freeze(model_.module, methods);
    frozen_ = torch::jit::optimize_for_inference(module, others);
    return *frozen_;
  }

  LoadedModel model_;
  std::optional<torch::jit::Module> frozen_;
};

} // namespace

Result<std::unique_ptr<Peers>> loadPeers(const std::string &path, DeviceKind device,
                                         std::optional<DType> precision, bool tf32) {
  CGC_ASSIGN_OR_RETURN(LoadedModel model, loadModel(path, device, precision, tf32));
  return std::unique_ptr<Peers>(std::make_unique<TorchPeers>(std::move(model)));
}

} // namespace cgc::frontend
