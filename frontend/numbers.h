// Numbers: Python numbers that tracing stored as tensors become numbers again.
#pragma once

#include <torch/csrc/jit/api/module.h>

namespace cgc::frontend {

/// Tracing writes `x / 255.0` as a division by a float64 tensor without dimensions, and saving
/// loses the mark that keeps it out of type promotion. LibTorch's executor undoes that on every run
/// with its optimizations (CanonicalizeOps): in add, sub, mul and div, a second operand that is
/// such a constant becomes a number. This does the same, so that `x / 255.0` is float32 for
/// integers here too. What the program itself wrote as torch.tensor(0.5, dtype=torch.float64) goes
/// through a cast in the trace, is no constant operand, and stays a tensor.
void restoreNumbers(const torch::jit::Module &module);

} // namespace cgc::frontend
