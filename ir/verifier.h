// Verifier: checks the invariants of graph.h, argument kinds against schemas, and result types
// against rules.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"

namespace cgc::ir {

/// Adds one error for each violation; returns whether there was none.
bool verify(const Graph &graph, Diagnostics &diagnostics);
/// Every graph of the module tree.
bool verify(const Module &module, Diagnostics &diagnostics);

} // namespace cgc::ir
