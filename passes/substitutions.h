// Substitutions: what a user registers at the pipeline's two extension points. Both are empty by
// default: what was traced is what runs.
#pragma once

#include "ir/module.h"
#include "ir/rewriter.h"
#include "runtime/base/status.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Replaces what a submodule computes. A module matches if its class name equals `className`
/// (empty: any), its path matches `pathGlob` (empty: any; `*` matches within one path component,
/// `**` across), and each of `attributes` is present with an equal value.
struct ModuleSubstitution {
  std::string name; ///< For messages.
  std::string className;
  std::string pathGlob;
  std::vector<ir::Attribute> attributes;
  /// Changes the graphs of a matched module in place; sees its parameters and attributes. The
  /// numbers of inputs and outputs of each graph must stay as they are: checked after the call.
  std::function<Status(ir::Module &)> rewrite;
};

/// Replaces nodes. `matchAndRewrite` is called for each node in order; it returns true if it
/// rewrote (the node may be gone then) and must not change anything when it returns false. It makes
/// nodes by GraphRewriter::tryCreate, whose refusal, returned, fails the compilation with the
/// reason.
struct OpSubstitution {
  std::string name;
  std::function<Result<bool>(ir::Node &, ir::GraphRewriter &)> matchAndRewrite;
};

struct Substitutions {
  std::vector<ModuleSubstitution> modules;
  std::vector<OpSubstitution> ops;
};

} // namespace cgc::passes
