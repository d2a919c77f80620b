// importExported: imports .pt2 archives, which torch.export.save writes, as ir::Module. Links no
// LibTorch.
#pragma once

#include "frontend/import_for.h"
#include "ir/input_shapes.h"
#include "ir/module.h"
#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"

#include <memory>
#include <string>

namespace cgc::exported {

struct ExportedModule {
  std::unique_ptr<ir::Module> module;
  ir::ShapesOfMethods shapes; ///< Of the inputs of each of its methods.
};

/// Reads the files at `paths` and imports their programs as the methods of one module: the program
/// of a single file as `onlyMethod`, each of several by the name of its file without the ending.
/// The calls of submodules are found by the stacks that torch recorded, so a method has the values
/// as arguments that it reads, in the order of their first use.
///
/// Programs share the weights that have one name and equal values. A program of which a weight has
/// other values than that of a file before it gets its modules below one with the name of its file.
///
/// InvalidFile, naming the member, for a file that is damaged, of another version or with pickled
/// weights. Usage if `onlyMethod` or the names of the files are no names of different methods. A
/// construct that cgc cannot express becomes a prim.refused node, so that compiling reports all of
/// its errors at once.
Result<ExportedModule> importExported(llvm::ArrayRef<std::string> paths,
                                      frontend::ImportFor purpose,
                                      const std::string &onlyMethod = "forward");

} // namespace cgc::exported
