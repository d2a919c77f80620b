// Numbers: restores Python numbers that tracing stored as tensors.
#pragma once

#include <torch/csrc/jit/api/module.h>

namespace cgc::script {

/// Restores the numbers of a module. Tracing writes `x / 255.0` as a division by a 0-d float64
/// tensor, and saving loses the mark that keeps it out of type promotion. LibTorch's executor
/// undoes this on every run with its optimizations (CanonicalizeOps): in add, sub, mul and div, a
/// second operand that is such a constant becomes a number. Doing the same here makes `x / 255.0`
/// float32 for integers too. A tensor that the program itself wrote as torch.tensor(0.5,
/// dtype=torch.float64) goes through a cast in the trace, so it is not a constant operand and stays
/// a tensor.
void restoreNumbers(const torch::jit::Module &module);

} // namespace cgc::script
