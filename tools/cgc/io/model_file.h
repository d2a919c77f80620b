// Model files: imports a TorchScript file or an exported program.
#pragma once

#include "driver/buckets.h"
#include "frontend/import_for.h"
#include "ir/input_shapes.h"
#include "ir/module.h"
#include "runtime/base/status.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

struct ModelFile {
  std::unique_ptr<ir::Module> root;
  std::optional<ir::InputShapes> shapes; ///< Of an exported program.
};

/// Imports `path` by its kind. Opens LibTorch only for TorchScript.
Result<ModelFile> importModel(const std::string &path, frontend::ImportFor purpose);

/// `given`, and the types with which a program was exported for its other inputs.
std::vector<driver::InputSpec> withExamples(std::vector<driver::InputSpec> given,
                                            const ir::InputShapes &shapes);

} // namespace cgc::tool
