// CsePass: common subexpression elimination.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Merges pure nodes with the same op and arguments into the first of them, and get_attr nodes that
/// read the same parameter or the same bytes. Requires a graph without in-place ops and calls.
struct CsePass {
  static constexpr const char *name = "cse";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
