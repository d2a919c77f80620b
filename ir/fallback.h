// fallback: the op that an aten.fallback node's schema names.
#pragma once

#include "ir/graph.h"

namespace cgc::ir {

/// Slices of the node's target string, which owns the text.
struct FallbackName {
  llvm::StringRef full;     ///< "aten::add.Tensor", or "aten::relu" without an overload.
  llvm::StringRef op;       ///< "aten::add".
  llvm::StringRef overload; ///< "Tensor"; empty without an overload.
};

/// Returns the op called by `node`, which must be an aten.fallback: its schema up to the arguments.
FallbackName fallbackName(const Node &node);

} // namespace cgc::ir
