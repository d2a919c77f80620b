// OpClass: the function of an op or of a plan's record, which selects its color in drawings.
#pragma once

#include "ir/op_def.h"
#include "support/dot_graph.h"

namespace cgc::ir {

/// The classes, in the order of legends.
enum class OpClass : uint8_t {
  Io,
  Weight,
  Module,    ///< A call of a method.
  Gemm,      ///< Matrix products and convolutions, which dominate run time.
  Attention, ///< Attention, with its softmax.
  Reduction, ///< Normalizations, softmax, sums, pooling.
  Pointwise,
  Move, ///< Copies, lookups, concatenation: memory traffic only.
  View, ///< No work at run time.
  Host, ///< Evaluated at compile time.
  Unknown,
};

/// Returns the class of an op by its traits.
OpClass classOf(OpKind op);
/// Returns the class of a plan's record by its name: that of the op of the same name for a call of
/// LibTorch (`aten::linear`), else by the words in the name of the kernel or library function
/// (`layer_norm_f16`). Unrecognized names are Pointwise.
OpClass classOfRecord(llvm::StringRef name);

/// Returns the style of the class in drawings.
DotStyle styleOf(OpClass opClass);

} // namespace cgc::ir
