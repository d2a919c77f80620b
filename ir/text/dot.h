// DOT: a graph as Graphviz text. Deterministic: node ids are value names, never addresses.
#pragma once

#include "ir/module.h"

#include "llvm/Support/raw_ostream.h"

namespace cgc::ir {

/// Writes `graph`, which must be valid, as one drawing (support/dot_graph.h) with types on its
/// edges.
void writeDot(llvm::raw_ostream &os, const Graph &graph);

} // namespace cgc::ir
