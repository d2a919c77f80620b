// Reference: runs a TorchScript method with LibTorch itself.
#include "frontend/convert.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "frontend/load.h"
#include "frontend/retarget.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "llvm/ADT/STLExtras.h"

#include <dlfcn.h>

#include <cstring>

namespace cgc::frontend {
namespace {

/// While it lives, float32 on the GPU means float32.
class FullPrecision {
public:
  FullPrecision()
      : matmul_(at::globalContext().allowTF32CuBLAS()),
        convolution_(at::globalContext().allowTF32CuDNN()) {
    at::globalContext().setAllowTF32CuBLAS(false);
    at::globalContext().setAllowTF32CuDNN(false);
  }
  FullPrecision(const FullPrecision &) = delete;
  FullPrecision &operator=(const FullPrecision &) = delete;
  ~FullPrecision() {
    at::globalContext().setAllowTF32CuBLAS(matmul_);
    at::globalContext().setAllowTF32CuDNN(convolution_);
  }

private:
  bool matmul_, convolution_;
};

Status openCuda() {
  // Loading it registers the CUDA kernels; it is huge, so that only those who need it link it.
  if (!dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL))
    return Status(Code::Device,
                  std::string("LibTorch's CUDA library cannot be loaded: ") + dlerror());
  if (!at::globalContext().hasCUDA())
    return Status(Code::Device,
                  "LibTorch sees no CUDA device; run on a machine with a GPU, or for the CPU");
  return Status::ok();
}

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
    std::optional<FullPrecision> fullPrecision;
    if (target_.precision)
      fullPrecision.emplace();
    auto method = module_.find_method(name);
    if (!method)
      return Status(Code::Usage, "the model has no such method");
    const c10::FunctionSchema &schema = method->function().getSchema();
    size_t expected = schema.arguments().size() - 1;
    if (inputs.size() != expected && inputs.size() != names.size())
      return Status(Code::Usage, "the method takes " + std::to_string(expected) + " inputs, not " +
                                     std::to_string(inputs.size()));
    std::vector<c10::IValue> stack;
    size_t taken = 0;
    for (const c10::Argument &argument : llvm::drop_begin(schema.arguments())) {
      if (inputs.size() == expected || (taken < names.size() && names[taken] == argument.name()))
        stack.emplace_back(toTensor(inputs[taken++]));
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

  at::Tensor toTensor(const TensorView &view) const {
    assert(view.device == DeviceKind::Cpu && "inputs lie in host memory");
    at::IntArrayRef sizes(view.sizes.data(), view.sizes.size());
    at::IntArrayRef strides(view.strides.data(), view.strides.size());
    auto options = at::TensorOptions().dtype(toScalarType(view.dtype));
    at::Tensor borrowed = strides.empty() && !sizes.empty()
                              ? at::from_blob(view.data, sizes, options)
                              : at::from_blob(view.data, sizes, strides, options);
    // A copy: the method may write to its inputs.
    return target_.convert(borrowed.clone());
  }

  torch::jit::Module module_;
  Target target_;
};

} // namespace

Result<std::unique_ptr<Reference>> loadReference(const std::string &path, DeviceKind device,
                                                 std::optional<DType> precision) {
  assert((!precision || isFloating(*precision)) && "a precision is a floating dtype");
  if (device == DeviceKind::Cuda)
    CGC_TRY(openCuda());
  CGC_ASSIGN_OR_RETURN(torch::jit::Module module, loadTorchScript(path));
  Target target{device == DeviceKind::Cuda ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU),
                {}};
  if (precision)
    target.precision = toScalarType(*precision);
  Status status = guarded(Code::Failed, [&] {
    retarget(module, target);
    return Status::ok();
  });
  if (!status.isOk())
    return status.withContext(path);
  return std::unique_ptr<Reference>(std::make_unique<TorchReference>(std::move(module), target));
}

} // namespace cgc::frontend
