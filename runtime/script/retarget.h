// Retarget: moves a loaded TorchScript module, including its code, to a device and a precision.
#pragma once

#include <ATen/core/function_schema.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>

namespace cgc::script {

struct Target {
  c10::Device device;
  /// f32, f64: narrower floating dtypes become this one. f16, bf16: all floating dtypes do.
  std::optional<c10::ScalarType> precision;
  /// Allows f32 GEMMs and convolutions on a GPU to round their operands to TF32.
  bool tf32 = false;

  /// Returns the type that `type` is converted to.
  c10::ScalarType converted(c10::ScalarType type) const;
  /// Returns the tensor on the device, converted if it is floating.
  at::Tensor convert(const at::Tensor &tensor) const;
};

/// Returns true if an int given for `argument` is a dtype. TorchScript stores both as ints; only
/// schemas distinguish them.
bool isDTypeArgument(const c10::Argument &argument);

/// Changes parameters, buffers and tensor attributes, and in the code of every method and function:
/// device constants, dtypes in casts, tensor constants, and whether a convolution may round to
/// TF32. Tracing bakes all of these in. Call before any method has run.
void retarget(torch::jit::Module &module, const Target &target);

} // namespace cgc::script
