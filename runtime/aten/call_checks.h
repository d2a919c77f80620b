// Checks of a call that need LibTorch: the sizes of its results before they are allocated, and
// integer divisions that would trap.
#pragma once

#include "runtime/base/status.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace cgc::aten {

/// The tensors among a call's results, in order. Lists of tensors are flattened.
std::vector<at::Tensor> tensorsOf(const std::vector<c10::IValue> &results);

/// Failed unless the results have the number, element types and sizes of `outputs`. An undefined
/// output stands for a result that the plan does not need.
Status checkResults(const std::vector<at::Tensor> &results, const std::vector<at::Tensor> &outputs);

/// Applies checkResults to the results that the call would have, computed on the meta device
/// without memory or data. With `writesOut`, checks that the call would not resize its written
/// arguments. Ok if LibTorch has no meta kernel for the op. May throw LibTorch's exceptions.
Status checkResultSizes(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args,
                        const std::vector<at::Tensor> &outputs, bool writesOut);

/// Whether this is a call of aten::div that truncates integers, or of aten::fmod of integers, which
/// checkIntegerDivision must check.
bool dividesIntegers(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args);
/// Failed if an element is the smallest integer and its divisor is -1: the quotient overflows, and
/// a CPU traps. Reads the tensors' memory.
Status checkIntegerDivision(const std::vector<c10::IValue> &args);

} // namespace cgc::aten
