// Output names: what a TorchScript file says about the outputs of its methods. TorchScript itself
// names only those of a dict.
#pragma once

#include "runtime/base/status.h"

#include <torch/csrc/jit/api/module.h>

#include <map>
#include <string>
#include <vector>

namespace cgc::frontend {

/// The names of a method's outputs, in their order, by method.
using OutputNames = std::map<std::string, std::vector<std::string>>;

/// What the record extra/cgc.json of the archive `path` says, from which `module` was loaded; empty
/// if there is no such record. InvalidFile if it says what does not fit the module. May throw what
/// LibTorch throws.
Result<OutputNames> readOutputNames(const std::string &path, const torch::jit::Module &module);

} // namespace cgc::frontend
