// Load: reads a file as a torch::jit::Module, or reports what kind of file it is instead.
#pragma once

#include "runtime/base/status.h"

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace cgc::frontend {

/// Loads `path` on the CPU and restores Python's numbers (runtime/script/numbers.h). InvalidFile
/// names the path, the error and the fix.
Result<torch::jit::Module> loadTorchScript(const std::string &path);

} // namespace cgc::frontend
