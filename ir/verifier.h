// Verifier: checks the invariants of graph.h, argument kinds against schemas, and result types
// against the ops' rules.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"

namespace cgc::ir {

/// Adds one error to `diagnostics` for each violation. Returns true if there were none.
bool verify(const Graph &graph, Diagnostics &diagnostics);
/// Verifies every graph of the module tree.
bool verify(const Module &module, Diagnostics &diagnostics);

} // namespace cgc::ir
