// WideValues: the values that stay f32 when a graph is converted to 16 bits.
#pragma once

#include "ir/graph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace cgc::passes {

/// Finds the floating values of a graph whose rounding to 16 bits could overflow or lose what the
/// next op needs. *Sources* are the ops that autocast computes in f32 (op_precision.h), squares and
/// variances. Their results stay f32 through pointwise ops, reductions and moves, up to
///  - an op that rounds its arguments: a matrix product, a convolution, attention, an output;
///  - a pointwise op with an operand in 16 bits, which is computed in f32. Its result is rounded
///    unless a source reads it.
/// What is computed from explicit casts to f32 stays f32 if a source, or an op with an operand of
/// a source, reads it. A result that only rounding ops read is rounded at once. Normalizations
/// (layer_norm, group_norm) round their results, which are small.
class WideValues {
public:
  /// Nothing is wide.
  WideValues() = default;
  /// Requires a graph with types and without in-place ops.
  explicit WideValues(const ir::Graph &graph);

  bool contains(const ir::Value *value) const { return wide_.contains(value); }
  /// Whether `node` computes in f32 for the sake of its arguments or results. Other ops round their
  /// arguments.
  bool computesWide(const ir::Node &node) const;

private:
  /// Where the elements of a value come from.
  enum class Origin : uint8_t {
    Constant, ///< Parameters, numbers and integers alone.
    Narrow,   ///< 16-bit values.
    Cast,     ///< Explicit casts to f32, and constants.
    Source,   ///< Sources, casts and constants.
  };

  Origin originOf(const ir::Node &node) const;
  /// Whether `value` is an explicit cast of a 16-bit value.
  bool isCastOfNarrow(const ir::Value &value) const;
  bool isReadWide(const ir::Value &value) const;
  bool readsWide(const ir::Node &user, const ir::Value &value) const;

  llvm::DenseMap<const ir::Value *, Origin> origins_; ///< Looked up, never iterated.
  llvm::DenseSet<const ir::Value *> wide_;            ///< Looked up, never iterated.
};

/// Whether the 16-bit kernels of `node`, a source, compute in f32 and round once, so that casts
/// around it would change nothing.
bool roundsOnce(const ir::Node &node);

} // namespace cgc::passes
