// Output names: the names that a TorchScript file records for the outputs of its methods.
// TorchScript itself names only those of a dict.
#pragma once

#include "runtime/base/status.h"

#include <torch/csrc/jit/api/module.h>

#include <map>
#include <string>
#include <vector>

namespace cgc::frontend {

/// The names of each method's outputs, in order, keyed by method.
using OutputNames = std::map<std::string, std::vector<std::string>>;

/// Reads the record extra/cgc.json of the archive `path`, from which `module` was loaded. Empty if
/// there is no such record. InvalidFile if the record does not match the module. May throw
/// LibTorch's exceptions.
Result<OutputNames> readOutputNames(const std::string &path, const torch::jit::Module &module);

} // namespace cgc::frontend
