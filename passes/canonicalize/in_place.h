// functionalize: the first step of canonicalize, which removes in-place ops.
#pragma once

#include "ir/diagnostics.h"
#include "ir/graph.h"

namespace cgc::passes {

/// Memory outside the graph that an in-place op overwrites.
struct Overwritten {
  ir::Cause cause = ir::Cause::None; ///< None where `message` says what to do.
  std::string message;               ///< Empty if there is no such memory.
};
/// Returns what `node`, an in-place op, overwrites if that is an input, a parameter or a buffer.
/// The node and all nodes before it must be typed.
Overwritten overwritten(ir::Node &node);

/// Returns "it is read at model.py:6", or that the model returns it.
std::string readBy(const ir::Node &reader);

/// Makes every in-place op functional. An update through ranges and indices of a value, as in
/// `x[1:3, 0] += y`, is concatenated with the rest to a new value. If the mutation is observable
/// otherwise (on an input, a parameter, or through another live view), reports an error at the op.
/// Returns whether there was any in-place op.
bool functionalize(ir::Graph &graph, ir::Diagnostics &diagnostics);

} // namespace cgc::passes
