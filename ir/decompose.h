// decompose: replaces calls by the simpler ops that define them (OpDef::decompose).
#pragma once

#include "ir/rewriter.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <vector>

namespace cgc::ir {

/// Adds the definition of `node` before it and returns the values that equal its results. Their
/// strides may be others. A result without users may be null. The node stays. Unsupported, with the
/// reason, if the op has no definition, or none for this call.
Result<Values> decompose(GraphRewriter &rewriter, Node &node);

/// Replaces each call that has a definition and that `isChosen`, also in the definitions of others.
/// Returns whether there was one.
bool decomposeCalls(Graph &graph, llvm::function_ref<bool(const Node &)> isChosen);

/// The definition of a call as a graph of its own.
struct Definition {
  /// Its outputs are the results, with their strides; none for one without users.
  std::unique_ptr<Graph> graph;
  std::vector<Value *> operands; ///< The values of the call that its inputs stand for, in order.
};
Result<Definition> definitionOf(const Node &node);

} // namespace cgc::ir
