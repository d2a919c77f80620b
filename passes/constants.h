// Constants: what passes read of parameters' bytes, and adding constants of their own.
#pragma once

#include "ir/module.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Whether `value` is a parameter, or a view of one.
bool isConstant(ir::Value *value);

/// The elements of a parameter or a view of one, in row-major order; nothing if its bytes are not
/// known or they are more than a pass should look at.
std::optional<std::vector<double>> elementsOf(ir::Value *value);

/// The constant of `module` with these bytes; a new one named after `hint` if there is none.
std::string findOrAddConstant(ir::Module &module, llvm::StringRef hint,
                              const std::shared_ptr<const ir::TensorData> &data);

} // namespace cgc::passes
