// DifferentiatedGraph: differentiates by the training passes and by LibTorch's autograd.
#include "tests/numerics/differentiated_graph.h"

#include "ir/rewriter.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "passes/manager/pass_manager.h"
#include "passes/train/differentiate.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"

#include "llvm/ADT/StringExtras.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace cgc::test {
namespace {

std::unique_ptr<ir::Module> parsedAsIs(const std::string &text) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, "case", diagnostics);
  if (!module) {
    ADD_FAILURE() << diagnostics.render() << text;
    return nullptr;
  }
  inferTypes(*module->findGraph("g"));
  // The text has the strides of dense inputs.
  EXPECT_FALSE(ir::reinferTypes(*module->findGraph("g"))) << text;
  EXPECT_TRUE(ir::verify(*module, diagnostics)) << diagnostics.render() << text;
  return module;
}

/// Has LibTorch compute attention by matmul and softmax. Its fused kernel for the CPU takes weights
/// of 1 for the gradient of a row whose mask absorbs the scores.
class UnfusedAttention {
public:
  UnfusedAttention() { at::globalContext().setSDPUseFlash(false); }
  ~UnfusedAttention() { at::globalContext().setSDPUseFlash(true); }
  UnfusedAttention(const UnfusedAttention &) = delete;
  UnfusedAttention &operator=(const UnfusedAttention &) = delete;
};

std::string stateName(size_t i) {
  return "state" + std::to_string(i);
}

/// The gradient of an input from that of its state.
at::Tensor inputOf(const at::Tensor &gradient, const Variant &variant) {
  return variant.strided && gradient.dim() > 1 ? gradient.transpose(-2, -1) : gradient;
}

} // namespace

DifferentiatedGraph::DifferentiatedGraph(const GradientCase &c)
    : case_(c), module_(parsedAsIs(c.graph)) {
  if (!module_)
    return;
  at::Generator random = at::detail::createCPUGenerator(7);
  const ir::Graph &graph = *module_->findGraph("g");
  for (const ir::Value *input : graph.inputs()) {
    inputs_.push_back(randomTensor(input->tensor(), c.bound, random));
    if (c.range && isFloating(input->tensor().dtype))
      inputs_.back().uniform_(c.range->first, c.range->second, random);
    if (isFloating(input->tensor().dtype))
      floating_.push_back(inputs_.size() - 1);
  }
  for (const ir::Arg &output : graph.outputs()) {
    const ir::TensorType &type = output.value()->tensor();
    factors_.push_back(isFloating(type.dtype) ? randomTensor(type, c.bound, random) : at::Tensor());
  }
}

bool DifferentiatedGraph::hasLoss() const {
  return std::ranges::any_of(factors_, [](const at::Tensor &factors) { return factors.defined(); });
}

Result<std::map<size_t, at::Tensor>> DifferentiatedGraph::gradients(const Variant &variant,
                                                                    DeviceKind target,
                                                                    ExecutorKind executor) const {
  const auto module = parsedAsIs(trainingText(variant));
  std::map<size_t, at::Tensor> gradients;
  if (!module)
    return gradients;
  std::vector<at::Tensor> data; // Of the states and the inputs.
  for (size_t i : variant.trained) {
    auto tensor = std::make_shared<at::Tensor>(stateOf(i, variant));
    const ir::TensorType &type = module->findParameter(stateName(i))->type;
    module->setParameterData(
        stateName(i),
        std::make_shared<ir::TensorData>(
            type,
            llvm::ArrayRef(static_cast<const std::byte *>(tensor->data_ptr()), tensor->nbytes()),
            tensor));
  }
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!variant.trained.contains(i))
      data.push_back(inputs_[i]);
  for (const at::Tensor &factors : factors_)
    if (factors.defined())
      data.push_back(factors);
  ir::Graph &graph = *module->findGraph("g");
  ir::Diagnostics diagnostics;
  passes::PassContext context;
  context.diagnostics = &diagnostics;
  const auto pipeline = passes::PassManager::parse("differentiate,dce");
  if (Status status = pipeline->runGraphPasses(graph, context, {}); !status.isOk())
    return Status(status.code(), status.message() + "\n" + diagnostics.render());
  EXPECT_TRUE(ir::verify(*module, diagnostics)) << diagnostics.render();
  LoweredGraph lowered(graph, target, executor);
  if (!lowered.isOk()) {
    ADD_FAILURE() << toString(graph);
    return gradients;
  }
  auto outputs = lowered.run("g", data);
  if (!outputs) {
    ADD_FAILURE() << outputs.status().message() << toString(graph);
    return gradients;
  }
  for (size_t i : variant.trained)
    gradients[i] = at::zeros_like(inputs_[i]);
  for (size_t k = 0; k < outputs->size(); ++k)
    for (size_t i : variant.trained)
      if (passes::gradientPath(graph.outputNames()[k]) == stateName(i))
        gradients[i] = inputOf((*outputs)[k], variant);
  return gradients;
}

std::map<size_t, at::Tensor> DifferentiatedGraph::expected(const Variant &variant) const {
  const at::AutoGradMode enabled(true);
  const UnfusedAttention unfused;
  std::vector<at::Tensor> inputs = inputs_, trained;
  for (size_t i : variant.trained)
    trained.push_back(inputs[i] = inputs_[i].detach().clone().requires_grad_(true));
  const at::Tensor loss = lossOf(recordWithLibTorch(case_.reference, inputs));
  std::vector<at::Tensor> found(trained.size());
  if (loss.requires_grad())
    found = torch::autograd::grad({loss}, trained, {}, std::nullopt, /*create_graph=*/false,
                                  /*allow_unused=*/true);
  std::map<size_t, at::Tensor> gradients;
  size_t next = 0;
  for (size_t i : variant.trained) {
    const at::Tensor &gradient = found[next++];
    gradients[i] = gradient.defined() ? gradient : at::zeros_like(inputs_[i]);
  }
  return gradients;
}

at::Tensor DifferentiatedGraph::differences(size_t i) const {
  constexpr double kStep = 1e-6;
  at::Tensor gradient = at::zeros(inputs_[i].sizes(), at::kDouble);
  for (int64_t element = 0; element < inputs_[i].numel(); ++element) {
    const auto lossAt = [&](double step) {
      std::vector<at::Tensor> inputs = inputs_;
      inputs[i] = inputs_[i].clone();
      inputs[i].view(-1)[element] += step;
      return lossOf(runWithLibTorch(case_.reference, inputs)).item<double>();
    };
    gradient.view(-1)[element] = (lossAt(kStep) - lossAt(-kStep)) / (2 * kStep);
  }
  return gradient;
}

at::Tensor DifferentiatedGraph::lossOf(const std::vector<at::Tensor> &outputs) const {
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (size_t k = 0; k < outputs.size(); ++k)
    if (factors_[k].defined())
      loss = loss + (outputs[k] * factors_[k]).sum();
  return loss;
}

at::Tensor DifferentiatedGraph::stateOf(size_t i, const Variant &variant) const {
  const at::Tensor &input = inputs_[i];
  return variant.strided && input.dim() > 1 ? input.transpose(-2, -1).contiguous()
                                            : input.contiguous();
}

std::string DifferentiatedGraph::trainingText(const Variant &variant) const {
  const ir::Graph &graph = *module_->findGraph("g");
  std::string states, reads, inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ir::Value *value = graph.inputs()[i];
    ir::TensorType type = value->tensor();
    const std::string name = "%" + value->name();
    if (!variant.trained.contains(i)) {
      inputs += (inputs.empty() ? "" : ", ") + name + ": " + toString(type);
      continue;
    }
    const bool transposes = variant.strided && type.rank() > 1;
    if (transposes)
      std::swap(type.sizes[type.sizes.size() - 1], type.sizes[type.sizes.size() - 2]);
    const std::string text = toString(ir::TensorType::dense(type.dtype, type.sizes)),
                      state = "@" + stateName(i);
    states += "  state " + state + " : " + text + "\n";
    const std::string read = transposes ? "%state" + std::to_string(i) : name;
    reads += "    " + read + " = get_attr " + state + " : " + text + "\n";
    if (transposes)
      reads += "    " + name + " = aten.transpose(" + read + ") {dim0=-2, dim1=-1} : dynamic\n";
  }
  std::string losses, loss; // The sums so far, and the name of the last.
  for (size_t k = 0; k < factors_.size(); ++k) {
    if (!factors_[k].defined())
      continue;
    const ir::Value *output = graph.outputs()[k].value();
    const std::string number = std::to_string(k), product = "%product" + number,
                      factors = "%factors" + number, sum = "%sum" + number;
    inputs += (inputs.empty() ? "" : ", ") + factors + ": " +
              toString(ir::TensorType::dense(output->tensor().dtype, output->tensor().sizes));
    losses += "    " + product + " = aten.mul(%" + output->name() + ", " + factors +
              ") : dynamic\n    " + sum + " = aten.sum(" + product + ") : dynamic\n";
    if (!loss.empty())
      losses += "    %loss" + number + " = aten.add(" + loss + ", " + sum + ") : dynamic\n";
    loss = loss.empty() ? sum : "%loss" + number;
  }
  std::string body;
  for (llvm::StringRef line : llvm::split(case_.graph, '\n'))
    if (line.starts_with("  ") && !line.trim().starts_with("output"))
      body += "  " + line.str() + "\n";
  return "module @m {\n" + states + "  graph @g(" + inputs + ") {\n" + reads + body + losses +
         "    output " + loss + "\n  }\n}\n";
}

} // namespace cgc::test
