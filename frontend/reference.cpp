// Reference: runs a TorchScript method with LibTorch itself.
#include "frontend/convert.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "frontend/model.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "llvm/ADT/STLExtras.h"

#include <cstring>

namespace cgc::frontend {
namespace {

void flatten(const c10::IValue &value, std::string name, std::vector<HostTensor> &outputs) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor().cpu().contiguous();
    std::optional<DType> dtype = toDType(tensor.scalar_type());
    TORCH_CHECK(dtype, "the method returned a ", tensor.scalar_type(),
                " tensor, which cgc does not support");
    HostTensor output;
    output.name = std::move(name);
    output.dtype = *dtype;
    output.sizes = tensor.sizes().vec();
    output.bytes.resize(tensor.nbytes());
    if (!output.bytes.empty())
      std::memcpy(output.bytes.data(), tensor.const_data_ptr(), output.bytes.size());
    outputs.push_back(std::move(output));
  } else if (value.isTuple()) {
    for (const c10::IValue &element : value.toTupleRef().elements())
      flatten(element, "", outputs);
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      flatten(element, "", outputs);
  } else if (value.isGenericDict()) {
    for (const auto &entry : value.toGenericDict())
      flatten(entry.value(), entry.key().isString() ? entry.key().toStringRef() : "", outputs);
  }
}

class TorchReference final : public Reference {
public:
  TorchReference(torch::jit::Module module, Target target)
      : module_(std::move(module)), target_(target) {}

  Result<std::vector<HostTensor>> run(const std::string &method, std::span<const TensorView> inputs,
                                      std::span<const std::string> names) override {
    std::vector<HostTensor> outputs;
    Status status =
        guarded(Code::Failed, [&] { return runThrowing(method, inputs, names, outputs); });
    if (!status.isOk())
      return status.withContext("LibTorch, " + method);
    return outputs;
  }

private:
  Status runThrowing(const std::string &name, std::span<const TensorView> inputs,
                     std::span<const std::string> names, std::vector<HostTensor> &outputs) {
    c10::InferenceMode inference;
    torch::jit::GraphOptimizerEnabledGuard noOptimizer(false);
    const Tf32 rounding(target_.tf32);
    auto method = module_.find_method(name);
    if (!method)
      return Status(Code::Usage,
                    "the model has no such method; an entry group is none: compare takes "
                    "--entry-group, and bench measures it without --against");
    const c10::FunctionSchema &schema = method->function().getSchema();
    size_t expected = schema.arguments().size() - 1;
    if (inputs.size() != expected && inputs.size() != names.size())
      return Status(Code::Usage, "the method takes " + std::to_string(expected) + " inputs, not " +
                                     std::to_string(inputs.size()));
    std::vector<c10::IValue> stack;
    size_t taken = 0;
    for (const c10::Argument &argument : llvm::drop_begin(schema.arguments())) {
      if (inputs.size() == expected || (taken < names.size() && names[taken] == argument.name()))
        stack.emplace_back(toTensor(inputs[taken++], target_));
      else if (argument.default_value())
        stack.push_back(*argument.default_value());
      else
        return Status(Code::Usage, "the method's input '" + argument.name() + "' is missing");
    }
    if (taken != inputs.size())
      return Status(Code::Usage, "the method has no input '" + names[taken] + "'");
    flatten((*method)(std::move(stack)), "", outputs);
    return Status::ok();
  }

  torch::jit::Module module_;
  Target target_;
};

} // namespace

Result<std::unique_ptr<Reference>> loadReference(const std::string &path, DeviceKind device,
                                                 std::optional<DType> precision, bool tf32) {
  CGC_ASSIGN_OR_RETURN(LoadedModel model, loadModel(path, device, precision, tf32));
  return std::unique_ptr<Reference>(
      std::make_unique<TorchReference>(std::move(model.module), model.target));
}

} // namespace cgc::frontend
