// Retarget: moves a loaded TorchScript module to a device and a precision, code included.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>

namespace cgc::frontend {

struct Target {
  c10::Device device;
  /// f32, f64: floating types narrower than this become this one. f16, bf16: all do.
  std::optional<c10::ScalarType> precision;
  /// Whether products and convolutions of f32 on a GPU may round their factors to TF32.
  bool tf32 = false;

  /// The type that `type` becomes.
  c10::ScalarType converted(c10::ScalarType type) const;
  /// A tensor, if of floats converted, on the device.
  at::Tensor convert(const at::Tensor &tensor) const;
};

/// Changes parameters, buffers and tensor attributes, and in the code of every method and function:
/// device constants, dtypes in casts, tensor constants, and whether a convolution may round to
/// TF32. Tracing bakes all of these in. To be called before any method has run.
void retarget(torch::jit::Module &module, const Target &target);

} // namespace cgc::frontend
