// Model files: imports a TorchScript file or exported programs.
#pragma once

#include "driver/buckets.h"
#include "frontend/import_for.h"
#include "ir/input_shapes.h"
#include "ir/module.h"
#include "runtime/base/status.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc::tool {

struct ModelFile {
  std::unique_ptr<ir::Module> root;
  ir::ShapesOfMethods shapes; ///< Of exported programs. Empty for TorchScript.
};

/// Whether the file at `path` is an exported program.
bool isExported(const std::string &path);

/// Imports a TorchScript file, or exported programs as the methods of one model. Opens LibTorch
/// only for TorchScript. Usage for several files of which one is TorchScript.
/// `onlyMethod`: the name of the method of a single exported program.
Result<ModelFile> importModel(const std::vector<std::string> &paths, frontend::ImportFor purpose,
                              const std::string &onlyMethod = "forward");

/// `given`, and the types with which programs were exported for their other inputs. Usage if two
/// programs have different types for one name that is not given.
Result<std::vector<driver::InputSpec>> withExamples(std::vector<driver::InputSpec> given,
                                                    const ir::ShapesOfMethods &shapes);

} // namespace cgc::tool
