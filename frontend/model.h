// LoadedModel: a TorchScript module on a device in a precision, for LibTorch to run.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/script/retarget.h"

#include <optional>
#include <string>

namespace cgc::frontend {

using script::Target;

struct LoadedModel {
  torch::jit::Module module;
  Target target;
};

/// Loads a model as loadReference() of frontend.h describes.
Result<LoadedModel> loadModel(const std::string &path, DeviceKind device,
                              std::optional<DType> precision, bool tf32);

/// Returns a copy of a tensor in host memory, converted and moved to the target. May throw.
at::Tensor toTensor(const TensorView &view, const Target &target);

/// While it exists, f32 GEMMs and convolutions on the GPU round their operands to TF32 if and only
/// if `allowed`.
class Tf32 final {
public:
  explicit Tf32(bool allowed);
  Tf32(const Tf32 &) = delete;
  Tf32 &operator=(const Tf32 &) = delete;
  ~Tf32();

private:
  bool matmul_, convolution_;
};

} // namespace cgc::frontend
