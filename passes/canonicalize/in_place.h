// functionalize: the first step of canonicalize, which rids a graph of in-place ops.
#pragma once

#include "ir/diagnostics.h"
#include "ir/graph.h"

namespace cgc::passes {

/// What an in-place op changes that is not the graph's own.
struct Overwritten {
  ir::Cause cause = ir::Cause::None;
  std::string message;
};
/// Whether `node`, in place and typed as all above it, overwrites an input or a parameter.
Overwritten overwritten(ir::Node &node);

/// "it is read at model.py:6", or that the model returns it.
std::string readBy(const ir::Node &reader);

/// Makes every in-place op functional. What one changes by way of ranges and indices of a value,
/// `x[1:3, 0] += y`, is put together with the rest to a new value. An op whose effect could be seen
/// otherwise (on an input, a parameter, or through another live view) is an error at that op.
/// Returns whether there was any in-place op.
bool functionalize(ir::Graph &graph, ir::Diagnostics &diagnostics);

} // namespace cgc::passes
