// Load: a file becomes a torch::jit::Module, or a message that says what the file is instead.
#pragma once

#include "runtime/base/status.h"

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace cgc::frontend {

/// Loads on the CPU, with Python's numbers restored (numbers.h). InvalidFile names the path, what
/// is wrong and what to do.
Result<torch::jit::Module> loadTorchScript(const std::string &path);

} // namespace cgc::frontend
