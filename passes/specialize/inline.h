// InlinePass: replaces calls of submodules by their bodies.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Every graph of the root becomes flat: each call_module is replaced by the body that it calls, at
/// any depth, once for each call. Paths of get_attr are then relative to the root; locations keep
/// the module that they came from. What the arguments of a call decide is decided: host ops are
/// evaluated, and of branches the side stays that is taken. Graphs of submodules stay as they are.
/// Fails on a call of nothing and on recursion.
struct InlinePass {
  static constexpr const char *name = "inline";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Module &module, PassContext &context) const;
};

} // namespace cgc::passes
