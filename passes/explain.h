// MatchFailure: why a pattern did not rewrite an op, for --explain.
#pragma once

#include "ir/graph.h"

#include <functional>
#include <string>

namespace cgc::passes {

/// One candidate, an op that a pattern is for, with the condition that it fails.
struct MatchFailure {
  std::string pattern; ///< The name of the pattern's function, or of an op substitution.
  std::string graph;
  std::string node; ///< The candidate as IR text.
  ir::Loc loc;      ///< The candidate's place in the model.
  std::string reason;
};

using MatchListener = std::function<void(const MatchFailure &)>;

/// Returns `file:line: remark: pattern: reason`, then the node and the module path, in the form of
/// ir::Diagnostics::render.
std::string toString(const MatchFailure &failure);

} // namespace cgc::passes
