// The patterns of canonicalize, one idea each. A pattern looks at one node that is in use and
// returns whether it rewrote it; it changes nothing otherwise. It may create nodes and redirect
// uses but erases nothing: what becomes unused is swept afterwards. `uses` is current when a
// pattern is called.
#pragma once

#include "passes/match.h"

namespace cgc::passes {

using Pattern = bool (*)(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// identities.cpp: what equals its input goes (a view of the same layout, `to` the same dtype,
/// dropout and detach, times 1, minus 0); a cast of a lossless cast becomes one cast; rsub of
/// tensors becomes sub.
bool dropIdentity(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// identities.cpp: a cast of an expanded tensor becomes an expanded cast, which is less work.
bool castBeforeExpand(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// copies.cpp: clone and every copying reshape become `contiguous` and a view.
bool normalizeCopy(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// copies.cpp: `contiguous` goes if all that read it, followed through views, can read the
/// original.
bool dropCopy(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// views.cpp: a chain of views becomes the shortest of the form
/// `permute? view? (select | slice)* permute? expand?`.
bool normalizeViews(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// linear.cpp: linears of one input by consecutive slices of one weight become one linear and
/// slices.
bool mergeLinears(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear.cpp: view(linear(x)) that only splits the rows becomes linear(view(x)).
bool unflattenLinear(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear.cpp: a view that only moves dimensions of size 1, as the permutation of a batch of one,
/// moves behind linear and layer_norm.
bool sinkView(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear.cpp: linear and layer_norm of permuted rows work on the rows in memory order; the
/// permutation moves behind them.
bool sinkPermute(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// attention.cpp: _native_multi_head_attention without mask and weights becomes linear,
/// scaled_dot_product_attention, linear.
bool expandNativeMha(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// attention.cpp: a query that was multiplied by a power of two: the factor moves into `scale`.
bool foldQueryScale(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// attention.cpp: the same for any factor: for selection, where another rounding does not matter.
bool foldAnyQueryScale(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
