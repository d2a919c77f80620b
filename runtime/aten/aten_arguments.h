// Arguments: converts a plan's constants and tensors to the boxed values that LibTorch's dispatcher
// takes.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

namespace cgc::aten {

/// LibTorch's type for `dtype`.
at::ScalarType scalarType(DType dtype);

/// The tensors and the device that arguments refer to.
struct ArgumentSource {
  /// The tensor of an id. Called with valid ids only, never with kNoTensor.
  std::function<at::Tensor(TensorId)> tensor;
  c10::Device device; ///< The value of a DeviceArg.
};

/// Converts `arg` to the type of the overload's `argument`, because dispatcher calls convert
/// nothing. A number for a Tensor argument becomes a "wrapped number", as in LibTorch's own Scalar
/// overloads. Unsupported if the kind of `arg` does not fit.
Result<c10::IValue> toIValue(const AtenArg &arg, const c10::Argument &argument,
                             const ArgumentSource &source);

} // namespace cgc::aten
