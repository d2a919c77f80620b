// DOT: a graph as Graphviz text. Deterministic: ids are value names, never addresses.
#pragma once

#include "ir/module.h"

#include "llvm/Support/raw_ostream.h"

namespace cgc::ir {

/// One DOT graph; nodes in clusters by module path.
void writeDot(llvm::raw_ostream &os, const Graph &graph);

} // namespace cgc::ir
