// LoadedModel: loads a file, loads LibTorch's CUDA library, and retargets the module.
#include "frontend/model.h"

#include "frontend/convert.h"
#include "frontend/guard.h"
#include "frontend/load.h"
#include "runtime/base/check.h"
#include "runtime/base/libtorch.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace cgc::frontend {
namespace {

Status openCuda() {
  // The library is huge, so it is loaded only when needed.
  CGC_TRY(
      openLibTorchCuda(reinterpret_cast<const void *>(&c10::Dispatcher::realSingleton)).status());
  if (!at::hasCUDA())
    return Status(Code::Device,
                  "LibTorch sees no CUDA device; run on a machine with a GPU, or for the CPU");
  return Status::ok();
}

} // namespace

Tf32::Tf32(bool allowed)
    : matmul_(at::globalContext().allowTF32CuBLAS()),
      convolution_(at::globalContext().allowTF32CuDNN()) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

Tf32::~Tf32() {
  at::globalContext().setAllowTF32CuBLAS(matmul_);
  at::globalContext().setAllowTF32CuDNN(convolution_);
}

at::Tensor toTensor(const TensorView &view, const Target &target) {
  CGC_CHECK(view.device == DeviceKind::Cpu && "inputs lie in host memory");
  at::IntArrayRef sizes(view.sizes.data(), view.sizes.size());
  at::IntArrayRef strides(view.strides.data(), view.strides.size());
  auto options = at::TensorOptions().dtype(toScalarType(view.dtype));
  at::Tensor borrowed = strides.empty() && !sizes.empty()
                            ? at::from_blob(view.data, sizes, options)
                            : at::from_blob(view.data, sizes, strides, options);
  // A copy, since the method may write to its inputs.
  return target.convert(borrowed.clone());
}

Result<LoadedModel> loadModel(const std::string &path, DeviceKind device,
                              std::optional<DType> precision, bool tf32) {
  CGC_CHECK((!precision || isFloating(*precision)) && "a precision is a floating dtype");
  if (device == DeviceKind::Cuda)
    CGC_TRY(openCuda());
  CGC_ASSIGN_OR_RETURN(torch::jit::Module module, loadTorchScript(path));
  Target target{
      device == DeviceKind::Cuda ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU), {}, tf32};
  if (precision)
    target.precision = toScalarType(*precision);
  Status status = guarded(Code::Failed, [&] {
    script::retarget(module, target);
    return Status::ok();
  });
  if (!status.isOk())
    return status.withContext(path);
  return LoadedModel{std::move(module), target};
}

} // namespace cgc::frontend
