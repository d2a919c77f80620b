// Preconditions: the forms of a graph that passes require of the passes before them.
#pragma once

#include "ir/graph.h"
#include "runtime/base/status.h"

namespace cgc::passes {

/// Returns Usage, naming the pass to run first, if `graph` calls a submodule.
Status requireInlined(const ir::Graph &graph);

/// Returns Usage, naming the pass to run first, if a value of `graph` has no tensor type.
Status requireTypes(const ir::Graph &graph);

/// Returns Usage, naming the pass to run first, if `graph` has in-place ops, other ops with a side
/// effect, or calls that may have one: a value would then depend on where it is read. Every pass
/// that moves, merges or evaluates nodes must check this.
Status requireFunctional(const ir::Graph &graph);

} // namespace cgc::passes
