// LoadedModel: a TorchScript module on a device in a precision, for LibTorch to run.
#pragma once

#include "frontend/retarget.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <optional>
#include <string>

namespace cgc::frontend {

struct LoadedModel {
  torch::jit::Module module;
  Target target;
};

/// As loadReference() of frontend.h says.
Result<LoadedModel> loadModel(const std::string &path, DeviceKind device,
                              std::optional<DType> precision, bool tf32);

/// A copy of a tensor in host memory, converted and moved to the target. May throw.
at::Tensor toTensor(const TensorView &view, const Target &target);

/// While it lives, products and convolutions of float32 on the GPU round their factors to TF32 if
/// `allowed`, and not else.
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
