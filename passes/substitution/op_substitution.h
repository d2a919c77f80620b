// OpSubstitutionPass: lets the user replace small groups of nodes.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Replaces every match of each registered OpSubstitution, in order of registration, one walk each;
/// nodes that a replacement creates are not offered to the same substitution again. Fails, with
/// both types named, if a replacement has another dtype or shape than what it replaces. Types are
/// recomputed afterwards, and what is unused is swept. Without registrations it does nothing.
struct OpSubstitutionPass {
  static constexpr const char *name = "op-substitution";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
