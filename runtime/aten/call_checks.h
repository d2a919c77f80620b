// Checks of a call that need LibTorch: its results before they are allocated, and divisions that
// would end the process.
#pragma once

#include "runtime/base/status.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace cgc::aten {

/// The tensors among a call's results, in order, those of a list one by one.
std::vector<at::Tensor> tensorsOf(const std::vector<c10::IValue> &results);

/// Failed unless the results have the number, element types and sizes of `outputs`. An undefined
/// output is a result that the plan does not want.
Status checkResults(const std::vector<at::Tensor> &results, const std::vector<at::Tensor> &outputs);

/// checkResults of what the call would yield, found without memory and without data; with
/// `writesOut` instead, that it would resize none of its arguments. Ok where LibTorch has no such
/// rule for the op. May throw what LibTorch throws.
Status checkResultSizes(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args,
                        const std::vector<at::Tensor> &outputs, bool writesOut);

/// Whether a call of aten::div truncates integers, so that it has to be asked checkIntegerDivision.
bool dividesIntegers(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args);
/// Failed if an element is the least integer and its divisor -1: their quotient is no integer, and
/// a CPU traps. Reads the tensors' memory.
Status checkIntegerDivision(const std::vector<c10::IValue> &args);

} // namespace cgc::aten
