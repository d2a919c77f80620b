// Imported: TorchScript files run through the frontend and the passes that refuse, for tests.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc::test {

/// Imports and verifies a file that must be valid.
std::unique_ptr<ir::Module> import(const std::string &path);

/// Compiles one method to a graph in which every value has a type. Adds its errors to
/// `diagnostics`.
std::unique_ptr<ir::Graph> specialize(const std::string &path, const std::string &method,
                                      std::vector<ir::Type> inputs, ir::Diagnostics &diagnostics);

/// The same with a method of an imported file. The graph borrows the module.
std::unique_ptr<ir::Graph> specialize(ir::Module &module, const std::string &method,
                                      std::vector<ir::Type> inputs, ir::Diagnostics &diagnostics);

/// Returns the errors of compiling a method.
std::vector<ir::Diagnostic> offenders(const std::string &path, std::vector<ir::Type> inputs,
                                      const std::string &method = "forward");

ir::Type floats(std::vector<int64_t> sizes);

/// Returns the 1-based line of small_models.py that ends in `# LINE: tag`.
unsigned lineOf(const std::string &tag);

} // namespace cgc::test
