// The tensors of what a TorchScript method returns.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

namespace cgc::script {

/// Appends the tensors of `result` to `tensors`: tuples, lists and dicts are flattened, in order.
void collectTensors(const c10::IValue &result, std::vector<at::Tensor> &tensors);

} // namespace cgc::script
