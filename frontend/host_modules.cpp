// HostModules: runs submodules that a plan leaves to the host program.
#include "frontend/convert.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "frontend/model.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace cgc::frontend {
namespace {

/// The results of a method: a tensor, or the tensors of a tuple or list.
struct Returned {
  std::vector<at::Tensor> tensors;
  bool isTuple = false;
};

Result<Returned> returnedBy(const c10::IValue &value) {
  if (value.isTensor())
    return Returned{{value.toTensor()}, false};
  Returned returned{{}, true};
  if (value.isTensorList()) {
    returned.tensors = value.toTensorVector();
  } else if (value.isTuple()) {
    for (const c10::IValue &element : value.toTupleRef().elements()) {
      if (!element.isTensor())
        return Status(Code::Unsupported, "it returns a tuple with a " + element.tagKind() +
                                             "; return a tensor or a tuple of tensors");
      returned.tensors.push_back(element.toTensor());
    }
  } else {
    return Status(Code::Unsupported,
                  "it returns a " + value.tagKind() + "; return a tensor or a tuple of tensors");
  }
  return returned;
}

std::string typeText(const at::Tensor &tensor) {
  std::string text(c10::toString(tensor.scalar_type()));
  text += '[';
  for (int64_t d = 0; d < tensor.dim(); ++d)
    text += (d ? "," : "") + std::to_string(tensor.size(d));
  return text + ']';
}

bool haveEqualTypes(const Returned &a, const Returned &b) {
  return a.isTuple == b.isTuple && a.tensors.size() == b.tensors.size() &&
         llvm::all_of(llvm::zip_equal(a.tensors, b.tensors), [](const auto &at) {
           const auto &[x, y] = at;
           return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes();
         });
}

class TorchHostModules final : public HostModules {
public:
  explicit TorchHostModules(LoadedModel model) : model_(std::move(model)) {}

  Result<HostModuleResults> resultTypes(const std::string &function,
                                        std::span<const TensorView> inputs) override {
    HostModuleResults results;
    Status status = guarded(Code::Unsupported, [&]() -> Status {
      // Zeros are valid indices. A method that refuses zeros may accept ones.
      Result<Returned> zeros = callFilled(function, inputs, 0),
                       ones = callFilled(function, inputs, 1);
      if (!zeros.isOk() && !ones.isOk())
        return zeros.status();
      if (zeros.isOk() && ones.isOk() && !haveEqualTypes(*zeros, *ones))
        return {Code::Unsupported,
                "the types of its results depend on the values of its inputs: it gives other types "
                "for zeros than for ones; a plan has static shapes"};
      const Returned &returned = zeros.isOk() ? *zeros : *ones;
      if (returned.tensors.empty())
        return {Code::Unsupported, "it returns no tensor"};
      results.isTuple = returned.isTuple;
      for (const at::Tensor &tensor : returned.tensors) {
        if (const std::string why = whyUnsupported(tensor); !why.empty())
          return {Code::Unsupported, "it returns " + why + ", which cgc does not support"};
        results.types.emplace_back(*toDType(tensor.scalar_type()), tensor.sizes().vec());
      }
      return Status::ok();
    });
    if (!status.isOk())
      return status.withContext("LibTorch, " + function);
    return results;
  }

  Status run(const std::string &function, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream) override {
    return guarded(Code::Failed,
                   [&]() -> Status {
                     // The id of a stream that LibTorch did not create is its handle.
                     c10::OptionalStreamGuard onStream;
                     if (model_.target.device.is_cuda())
                       onStream.reset_stream(c10::Stream(c10::Stream::UNSAFE, model_.target.device,
                                                         reinterpret_cast<c10::StreamId>(stream)));
                     std::vector<at::Tensor> tensors;
                     for (const TensorView &input : inputs)
                       tensors.push_back(borrow(input));
                     CGC_ASSIGN_OR_RETURN(const Returned returned, call(function, tensors));
                     if (returned.tensors.size() != outputs.size())
                       return {Code::Failed, "it gives " + std::to_string(returned.tensors.size()) +
                                                 " results, and the plan has " +
                                                 std::to_string(outputs.size())};
                     for (size_t i = 0; i < outputs.size(); ++i) {
                       at::Tensor to = borrow(outputs[i]);
                       const at::Tensor &from = returned.tensors[i];
                       if (to.scalar_type() != from.scalar_type() || to.sizes() != from.sizes())
                         return {Code::Failed,
                                 "result " + std::to_string(i) + " is " + typeText(from) +
                                     ", and the plan has " + typeText(to) +
                                     "; is this the model that the plan was compiled from?"};
                       to.copy_(from, /*non_blocking=*/true);
                     }
                     return Status::ok();
                   })
        .withContext("LibTorch");
  }

private:
  /// The dense tensor of a view, which shares its memory.
  at::Tensor borrow(const TensorView &view) const {
    at::IntArrayRef sizes(view.sizes.data(), view.sizes.size());
    return at::for_blob(view.data, sizes)
        .options(at::TensorOptions(model_.target.device).dtype(toScalarType(view.dtype)))
        .target_device(model_.target.device)
        .make_tensor();
  }

  Result<Returned> callFilled(const std::string &function, std::span<const TensorView> inputs,
                              int value) const {
    Result<Returned> returned = Status(Code::Failed, "not called");
    const Status status = guarded(Code::Unsupported, [&]() -> Status {
      std::vector<at::Tensor> tensors;
      for (const TensorView &input : inputs)
        tensors.push_back(
            at::full(at::IntArrayRef(input.sizes.data(), input.sizes.size()), value,
                     at::TensorOptions(model_.target.device).dtype(toScalarType(input.dtype))));
      returned = call(function, tensors);
      return returned.status();
    });
    if (!status.isOk())
      return status;
    return returned;
  }

  /// Calls a method; arguments after `inputs` keep their defaults. May throw.
  Result<Returned> call(const std::string &function, const std::vector<at::Tensor> &inputs) const {
    const at::NoGradGuard noGradients;
    torch::jit::GraphOptimizerEnabledGuard noOptimizer(false);
    llvm::SmallVector<llvm::StringRef> path;
    llvm::StringRef(function).split(path, '.');
    torch::jit::Module module = model_.module;
    for (llvm::StringRef name : llvm::ArrayRef(path).drop_back()) {
      if (!module.hasattr(name.str()) || !module.attr(name.str()).isModule())
        return Status(Code::Usage, "the model has no module '" + name.str() + "' there");
      module = module.attr(name.str()).toModule();
    }
    auto method = module.find_method(path.back().str());
    if (!method)
      return Status(Code::Usage, "the module has no such method");
    const auto &arguments = method->function().getSchema().arguments();
    if (inputs.size() + 1 > arguments.size())
      return Status(Code::Usage, "it takes " + std::to_string(arguments.size() - 1) +
                                     " arguments, not " + std::to_string(inputs.size()));
    std::vector<uint32_t> versions;
    for (const at::Tensor &input : inputs)
      versions.push_back(input._version());
    std::vector<c10::IValue> stack(inputs.begin(), inputs.end());
    for (const c10::Argument &argument : llvm::ArrayRef(arguments).drop_front(inputs.size() + 1)) {
      if (!argument.default_value())
        return Status(Code::Usage, "its argument '" + argument.name() + "' is missing");
      stack.push_back(*argument.default_value());
    }
    CGC_ASSIGN_OR_RETURN(Returned returned, returnedBy((*method)(std::move(stack))));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]._version() != versions[i])
        return Status(Code::Unsupported, "it overwrites its argument '" + arguments[i + 1].name() +
                                             "', which other ops may read; return a new tensor");
    return returned;
  }

  LoadedModel model_;
};

} // namespace

Result<std::unique_ptr<HostModules>> loadHostModules(const std::string &path, DeviceKind device) {
  CGC_ASSIGN_OR_RETURN(LoadedModel model,
                       loadModel(path, device, /*precision=*/std::nullopt, /*tf32=*/false));
  return std::unique_ptr<HostModules>(std::make_unique<TorchHostModules>(std::move(model)));
}

} // namespace cgc::frontend
