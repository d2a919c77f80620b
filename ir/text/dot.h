// DOT: a graph as Graphviz text. Deterministic: ids are value names, never addresses.
#pragma once

#include "ir/module.h"

#include "llvm/Support/raw_ostream.h"

namespace cgc::ir {

/// One drawing (support/dot_graph.h), with types on its edges. The graph must be valid.
void writeDot(llvm::raw_ostream &os, const Graph &graph);

} // namespace cgc::ir
