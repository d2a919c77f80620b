// functionalize: the first step of canonicalize, which rids a graph of in-place ops.
#pragma once

#include "ir/diagnostics.h"
#include "ir/graph.h"

namespace cgc::passes {

/// Makes every in-place op functional. An op whose effect could be seen otherwise than by its
/// result (on an input, a parameter, or through another live view) is an error at that op. Returns
/// whether there was any in-place op.
bool functionalize(ir::Graph &graph, ir::Diagnostics &diagnostics);

} // namespace cgc::passes
