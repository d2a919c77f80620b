// importExported: imports .pt2 archives, which torch.export.save writes, as ir::Module. Links no
// LibTorch.
#pragma once

#include "frontend/import_for.h"
#include "ir/input_shapes.h"
#include "ir/module.h"
#include "runtime/base/status.h"

#include <memory>
#include <string>

namespace cgc::exported {

struct ExportedModule {
  std::unique_ptr<ir::Module> module;
  ir::InputShapes shapes; ///< Of the inputs of its method `forward`.
};

/// Reads `path` and imports its program as the method `forward` of a module. The calls of
/// submodules are found by the stacks that torch recorded, so a method has the values as arguments
/// that it reads, in the order of their first use. InvalidFile, naming the member, for a file that
/// is damaged, of another version or with pickled weights. A construct that cgc cannot express
/// becomes a prim.refused node, so that compiling reports all of its errors at once.
Result<ExportedModule> importExported(const std::string &path, frontend::ImportFor purpose);

} // namespace cgc::exported
