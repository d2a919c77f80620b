// DcePass: dead code elimination.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Erases pure nodes and get_attr nodes without users. Placeholders stay.
struct DcePass {
  static constexpr const char *name = "dce";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
