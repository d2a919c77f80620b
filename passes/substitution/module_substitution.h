// ModuleSubstitutionPass: lets the user replace what a submodule computes.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Runs each registered ModuleSubstitution on the modules that it matches: substitutions in the
/// order of registration, modules from the root down. Fails if one changes how many inputs or
/// outputs a graph has, or removes a graph: callers still have the old signature. Types are not
/// known here: each result passes through a `prim.substituted` beside a copy of the original, for
/// `specialize` to compare. Without registrations it does nothing.
struct ModuleSubstitutionPass {
  static constexpr const char *name = "module-substitution";
  Result<Changed> run(ir::Module &module, PassContext &context) const;
};

} // namespace cgc::passes
