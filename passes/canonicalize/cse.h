// CsePass: merges equal nodes.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Of several pure nodes with the same op and arguments the first stays; so of get_attr nodes that
/// read the same parameter or the same bytes. Wants a graph without in-place ops and calls.
struct CsePass {
  static constexpr const char *name = "cse";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
