// Selection: passes that put several ops together to one that has a kernel of its own (`cgc.` in
// ir/ops.def). They want the forms of canonicalize. The default pipeline runs them for cuda, but
// none of them depends on the target. An op goes only if nobody else needs its result.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Linears of one input whose results go to attention alone, with constant weights, become one
/// linear on the concatenated weights, and slices.
struct PackLinearsPass {
  static constexpr const char *name = "pack-linears";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// scaled_dot_product_attention becomes cgc.attention, which writes the heads of a token side by
/// side, where the readers of its result can do with that order; the copies that made it go. A
/// factor of the query moves into the scale, and a constant causal mask becomes a flag.
struct SelectAttentionPass {
  static constexpr const char *name = "select-attention";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// A convolution whose windows do not overlap becomes cgc.patches and a linear. A row of patches is
/// padded to a multiple of 8 where that costs little.
struct SelectPatchesPass {
  static constexpr const char *name = "select-patches";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// A class token before patches becomes cgc.tokens, and positions that are added go into it.
struct SelectTokensPass {
  static constexpr const char *name = "select-tokens";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// embedding plus positions becomes cgc.embedding. A narrowing cast of what was looked up becomes a
/// cast of the table.
struct SelectEmbeddingPass {
  static constexpr const char *name = "select-embedding";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// A product with a constant matrix becomes a linear; x * sigmoid(1.702 * x) becomes
/// cgc.quick_gelu; and a linear takes up the activation and the residual that follow it, as
/// cgc.linear.
struct SelectLinearPass {
  static constexpr const char *name = "select-linear";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// A sum and its layer_norm become cgc.add_layer_norm; a division by the norm cgc.normalize.
struct SelectNormPass {
  static constexpr const char *name = "select-norm";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Pooling by the first row, or by the row that an argmax names, becomes cgc.rows, where prune-rows
/// can use it.
struct SelectRowsPass {
  static constexpr const char *name = "select-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// cgc.rows moves up through what works row by row, so that rows which nobody pools are not
/// computed; attention then has one query for each sequence.
struct PruneRowsPass {
  static constexpr const char *name = "prune-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// A linear of normalized rows in f16 or bf16, where the layer_norm has no other reader and its
/// parameters and those of the linear are constant, becomes cgc.norm_linear: the scale goes into
/// the columns of the weight, whose rows lose their mean, and the shift into the bias. A weight
/// that something else reads too stays, so that a plan never holds it twice. Wants `fold` after it.
struct SelectNormLinearPass {
  static constexpr const char *name = "select-norm-linear";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
