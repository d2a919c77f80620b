// fallback: what the schema of an aten.fallback names.
#pragma once

#include "ir/graph.h"

namespace cgc::ir {

/// Parts of the node's target, which owns the text.
struct FallbackName {
  llvm::StringRef full;     ///< "aten::add.Tensor"; "aten::relu" without an overload.
  llvm::StringRef op;       ///< "aten::add".
  llvm::StringRef overload; ///< "Tensor"; empty without one.
};

/// What `node`, an aten.fallback, calls: its schema up to the arguments.
FallbackName fallbackName(const Node &node);

} // namespace cgc::ir
