// ModuleSubstitutionPass: user-defined replacements of submodules.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Runs each registered ModuleSubstitution on the modules that it matches: substitutions in
/// registration order, modules from the root down. Fails if a substitution changes the number of
/// inputs or outputs of a graph, or removes a graph, since callers still have the old signature.
/// Types are unknown here: each result passes through a `prim.substituted` beside a copy of the
/// original, for `specialize` to compare. Without registrations it does nothing.
struct ModuleSubstitutionPass {
  static constexpr const char *name = "module-substitution";
  Result<Changed> run(ir::Module &module, PassContext &context) const;
};

} // namespace cgc::passes
