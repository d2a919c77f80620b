// OpSubstitutionPass: user-defined replacements of small groups of nodes.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Replaces every match of each registered OpSubstitution, in registration order, in one walk each.
/// Nodes created by a replacement are not offered to the same substitution again. Fails, naming
/// both types, if a replacement has another dtype or shape than the original. Recomputes types and
/// erases dead nodes afterwards. Without registrations it does nothing.
struct OpSubstitutionPass {
  static constexpr const char *name = "op-substitution";
  static constexpr bool explains = true; ///< At the time at which a substitution sees a node.
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
