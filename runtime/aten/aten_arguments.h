// Arguments: a plan's constants and tensors as the boxed values that LibTorch's dispatcher takes.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

namespace cgc::aten {

at::ScalarType scalarType(DType dtype);

struct ArgumentSource {
  /// Ids are valid, and never kNoTensor.
  std::function<at::Tensor(TensorId)> tensor;
  c10::Device device; ///< What a DeviceArg stands for.
};

/// `arg` as the overload's `argument` wants it: dispatcher calls convert nothing by themselves. A
/// number for a Tensor becomes a "wrapped number", as LibTorch's own Scalar overloads make it.
/// Unsupported if the kind does not fit.
Result<c10::IValue> toIValue(const AtenArg &arg, const c10::Argument &argument,
                             const ArgumentSource &source);

} // namespace cgc::aten
