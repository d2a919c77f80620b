// ScriptModel: a TorchScript module on the provider's device, run by LibTorch's interpreter.
#include "runtime/aten/script_model.h"

#include "runtime/aten/aten_arguments.h"
#include "runtime/aten/exception_guard.h"
#include "runtime/aten/full_precision.h"
#include "runtime/base/file.h"
#include "runtime/script/literals.h"
#include "runtime/script/numbers.h"
#include "runtime/script/results.h"
#include "runtime/script/retarget.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

namespace cgc::aten {
namespace {

std::string sizesText(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + "]";
}

/// A tensor over the memory of a dense view, which it does not own.
at::Tensor borrow(const TensorView &view, c10::Device device) {
  const c10::Device where = view.device == DeviceKind::Cuda ? device : c10::Device(c10::kCPU);
  return at::for_blob(view.data, {view.sizes.data(), view.sizes.size()})
      .options(at::TensorOptions(where).dtype(scalarType(view.dtype)))
      .target_device(where)
      .make_tensor();
}

Status checkResults(const Entry &entry, const std::vector<at::Tensor> &results,
                    std::span<const TensorView> outputs) {
  if (results.size() != outputs.size())
    return {Code::Usage, "the method returns " + std::to_string(results.size()) + " tensors, and " +
                             std::to_string(outputs.size()) + " outputs were given"};
  for (size_t i = 0; i < results.size(); ++i) {
    const at::IntArrayRef given(outputs[i].sizes.data(), outputs[i].sizes.size());
    const std::string output = "output '" + entry.buckets[0].outputs[i].name + "' is ";
    if (results[i].sizes() != given)
      return {Code::Usage,
              output + sizesText(results[i].sizes()) + ", and " + sizesText(given) + " was given"};
    if (results[i].scalar_type() != scalarType(outputs[i].dtype))
      return {Code::Failed, output + c10::toString(results[i].scalar_type()) + " instead of " +
                                std::string(dtypeName(outputs[i].dtype)) +
                                "; give the file that the plan was compiled from"};
  }
  return Status::ok();
}

class TorchModel final : public ScriptModel {
public:
  TorchModel(torch::jit::Module module, c10::Device device)
      : module_(std::move(module)), device_(device) {}

  bool hasMethod(std::string_view name) const override {
    return module_.find_method(std::string(name)).has_value();
  }

  Status checkPlan(const PlanData &plan) const override {
    for (const Entry &entry : plan.entries)
      if (const auto method = module_.find_method(entry.name))
        for (const IoTensor &input : entry.buckets[0].inputs)
          if (!method->function().getSchema().argumentIndexWithName(input.name))
            return {Code::Usage, "method '" + entry.name + "' has no parameter '" + input.name +
                                     "', an input of the plan"};
    std::unordered_map<std::string, at::Tensor> tensors;
    for (const auto &attribute : module_.named_attributes())
      if (attribute.value.isTensor())
        tensors.emplace(attribute.name, attribute.value.toTensor());
    for (const Weight &weight : plan.weights) {
      const auto found = tensors.find(weight.name);
      if (weight.isComputed ||
          (found == tensors.end() && weight.name.starts_with(script::kLiteral)))
        continue;
      const at::IntArrayRef sizes(weight.sizes.data(), weight.sizes.size());
      if (found == tensors.end() || found->second.sizes() != sizes)
        return {Code::Usage, "weight '" + weight.name + "' of the plan is " + sizesText(sizes) +
                                 ", and the model has " +
                                 (found == tensors.end() ? "none of this name"
                                                         : sizesText(found->second.sizes()))};
    }
    return Status::ok();
  }

  Status run(const Entry &entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) override {
    return guarded([&]() -> Status {
             c10::InferenceMode inference;
             // The optimizer would compile kernels for each new shape while a request waits.
             torch::jit::GraphOptimizerEnabledGuard noOptimizer(false);
             std::optional<FullPrecision> fullPrecision;
             if (device_.is_cuda())
               fullPrecision.emplace();
             return runThrowing(entry, inputs, outputs);
           })
        .withContext("LibTorch");
  }

private:
  Status runThrowing(const Entry &entry, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs) {
    auto method = module_.find_method(entry.name);
    if (!method)
      return {Code::Usage, "the model has no method '" + entry.name + "'"};
    std::unordered_map<std::string, c10::IValue> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) // Copies, because the method may write its inputs.
      arguments[entry.buckets[0].inputs[i].name] =
          borrow(inputs[i], device_)
              .to(at::TensorOptions(device_), /*non_blocking=*/false, /*copy=*/true);
    std::vector<at::Tensor> results;
    script::collectTensors((*method)({}, arguments), results);
    CGC_TRY(checkResults(entry, results, outputs));
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].numel() > 0)
        borrow(outputs[i], device_).copy_(results[i]);
    return Status::ok();
  }

  torch::jit::Module module_;
  c10::Device device_;
};

} // namespace

Result<std::unique_ptr<ScriptModel>>
loadScriptModel(const std::string &path, std::optional<DType> precision, c10::Device device) {
  CGC_TRY(MappedFile::open(path).status()); // Names a missing file.
  torch::jit::Module module;
  const Status read = guarded([&] {
    module = torch::jit::load(path, c10::Device(c10::kCPU));
    return Status::ok();
  });
  if (!read.isOk())
    return Status(read.code() == Code::Failed ? Code::InvalidFile : read.code(),
                  path + ": LibTorch cannot read this as TorchScript (" + read.message() + ")");
  script::Target target{device, {}};
  if (precision)
    target.precision = scalarType(*precision);
  CGC_TRY(guarded([&] {
            script::restoreNumbers(module);
            script::retarget(module, target);
            return Status::ok();
          }).withContext(path));
  return std::unique_ptr<ScriptModel>(std::make_unique<TorchModel>(std::move(module), device));
}

} // namespace cgc::aten
