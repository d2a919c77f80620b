// InlinePass: replaces calls of submodules with their bodies.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Flattens every graph of the root: replaces each call_module with the body of the callee, at any
/// depth, once for each call. Paths of get_attr become relative to the root; locations keep the
/// module that they came from. Evaluates host ops and branches that the arguments of a call decide,
/// and keeps only the taken side. Graphs of submodules stay as they are. Fails on a call of a
/// missing method and on recursion.
struct InlinePass {
  static constexpr const char *name = "inline";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Module &module, PassContext &context) const;
};

} // namespace cgc::passes
