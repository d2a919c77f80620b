// DOT: a graph as Graphviz text. Deterministic: node ids are value names, never addresses.
#pragma once

#include "ir/module.h"
#include "support/dot_graph.h"

#include "llvm/Support/raw_ostream.h"

namespace cgc::ir {

/// Writes `graph`, which must be valid, as one drawing (support/dot_graph.h) with types on its
/// edges.
void writeDot(llvm::raw_ostream &os, const Graph &graph);

/// Returns the class of an op by its traits.
OpClass classOf(OpKind op);
/// Returns the class of a plan's record by its name: that of the op of the same name for a call of
/// LibTorch (`aten::linear`), else by classOfName.
OpClass classOfRecord(llvm::StringRef name);

} // namespace cgc::ir
