// Selection: passes that combine several ops into one with a kernel of its own (`cgc.` in
// ir/ops.def). They require the canonical forms of canonicalize. The default pipeline runs them for
// cuda, but none of them depends on the target. An op is combined only if its result has no other
// users.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Merges linears of one input, with constant weights and results that only attention uses, into
/// one linear by the concatenated weights, and slices.
struct PackLinearsPass {
  static constexpr const char *name = "pack-linears";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces scaled_dot_product_attention with cgc.attention, which writes the heads of a token side
/// by side, if the users of its result accept that order, and drops the copies that produced it. A
/// factor of the query moves into the scale, and a constant causal mask becomes a flag.
struct SelectAttentionPass {
  static constexpr const char *name = "select-attention";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces a convolution with non-overlapping windows by cgc.patches and a linear. Pads a row of
/// patches to a multiple of 8 where that adds few columns.
struct SelectPatchesPass {
  static constexpr const char *name = "select-patches";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces a class token concatenated before patches by cgc.tokens, including the added positions.
struct SelectTokensPass {
  static constexpr const char *name = "select-tokens";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces embedding plus positions by cgc.embedding. A narrowing cast of the looked-up rows
/// becomes a cast of the table.
struct SelectEmbeddingPass {
  static constexpr const char *name = "select-embedding";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces a matmul with a constant matrix by a linear, and x * sigmoid(1.702 * x) by
/// cgc.quick_gelu. Fuses a linear with the activation and the residual that follow it into
/// cgc.linear.
struct SelectLinearPass {
  static constexpr const char *name = "select-linear";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Fuses a sum and its layer_norm into cgc.add_layer_norm. Replaces a division by the norm by
/// cgc.normalize.
struct SelectNormPass {
  static constexpr const char *name = "select-norm";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Replaces pooling by the first row, or by the row that an argmax selects, by cgc.rows, where
/// prune-rows benefits.
struct SelectRowsPass {
  static constexpr const char *name = "select-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Moves cgc.rows up through ops that process each row independently, so that rows that are not
/// pooled are not computed. Attention then has one query for each sequence.
struct PruneRowsPass {
  static constexpr const char *name = "prune-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Fuses a linear of normalized rows in f16 or bf16 into cgc.norm_linear, if the layer_norm has no
/// other user and the parameters of both are constant. The norm's scale goes into the columns of
/// the weight, whose rows are then centered, and its shift into the bias. A weight with other users
/// is left alone, so that a plan never holds it twice. Requires `fold` after it.
struct SelectNormLinearPass {
  static constexpr const char *name = "select-norm-linear";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

} // namespace cgc::passes
