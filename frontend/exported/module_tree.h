// ModuleTree: the modules of a program, without their code.
#pragma once

#include "frontend/exported/program.h"
#include "ir/module.h"

#include "llvm/ADT/StringMap.h"

#include <memory>

namespace cgc::exported {

class ModuleTree final {
public:
  /// Creates the modules in which the nodes of `program` ran and that are missing. The first
  /// program names the class of the root.
  void add(const Program &program);

  /// Returns the module at `path`, created if it is missing. Null if the path is nested too deep.
  ir::Module *at(llvm::StringRef path);
  bool hasRoot() const { return root_ != nullptr; }
  ir::Module &root() { return *root_; }
  std::unique_ptr<ir::Module> take() { return std::move(root_); }

private:
  llvm::StringMap<std::string> classes_; ///< By path. Never iterated.
  std::unique_ptr<ir::Module> root_;
};

} // namespace cgc::exported
