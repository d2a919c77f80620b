// loadScriptModel: reads a TorchScript file and runs its methods on views.
#pragma once

#include "runtime/plan/op_provider.h"

#include <c10/core/Device.h>

namespace cgc::aten {

/// Loads `path` to `device`, converted to `precision`, if there is one. InvalidFile, naming the
/// path, if the file is missing or LibTorch cannot read it.
Result<std::unique_ptr<ScriptModel>>
loadScriptModel(const std::string &path, std::optional<DType> precision, c10::Device device);

} // namespace cgc::aten
