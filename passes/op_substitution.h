// OpSubstitutionPass: lets the user replace small groups of nodes.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Offers each node to each registered OpSubstitution, in order of registration, one walk each;
/// nodes that a rewrite creates are not offered to the same substitution again. Types are
/// recomputed afterwards. Without registrations it does nothing.
struct OpSubstitutionPass {
  static constexpr const char *name = "op-substitution";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
