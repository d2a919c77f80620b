// Constants: access to the bytes of parameters, and adding constants, for passes.
#pragma once

#include "ir/module.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Returns true if `node` reads a state, whose value differs from run to run.
bool readsState(const ir::Node &node);

/// Returns true if a part of the module tree has states, as a model that is trained.
bool isTrained(const ir::Module &module);

/// Returns true if `value` is a parameter that is not a state, or a view of one.
bool isConstant(ir::Value *value);

/// Returns true if `value` depends on parameters alone, states excepted, so that `fold` evaluates
/// the ops on it.
bool dependsOnParametersOnly(const ir::Value *value);
/// Also returns true for none.
bool dependsOnParametersOnly(const ir::Arg &arg);

/// Returns true if `value` has one user, and nothing else reads the parameters that it depends on.
/// A pattern that replaces `value` by another form of it requires this, so that a plan never holds
/// a weight twice.
bool hasOneReader(const ir::Value *value);

/// Returns the elements of a parameter or a view of one, in row-major order; nullopt if its bytes
/// are unknown or too many for a pass to look at.
std::optional<std::vector<double>> elementsOf(ir::Value *value);

/// Returns the name of the constant of `module` with these bytes. Adds one named after `hint` if
/// there is none. `isConverted`: as in ir::Parameter.
std::string findOrAddConstant(ir::Module &module, llvm::StringRef hint,
                              const std::shared_ptr<const ir::TensorData> &data,
                              bool isConverted = false);

} // namespace cgc::passes
