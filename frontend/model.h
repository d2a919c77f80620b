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
                              std::optional<DType> precision);

/// A copy of a tensor in host memory, converted and moved to the target. May throw.
at::Tensor toTensor(const TensorView &view, const Target &target);

/// While it lives, float32 on the GPU means float32.
class FullPrecision final {
public:
  FullPrecision();
  FullPrecision(const FullPrecision &) = delete;
  FullPrecision &operator=(const FullPrecision &) = delete;
  ~FullPrecision();

private:
  bool matmul_, convolution_;
};

} // namespace cgc::frontend
