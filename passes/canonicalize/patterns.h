// patterns: the canonicalization patterns. A pattern looks at one node that is in use, and returns
// true if it rewrote the node; otherwise it changes nothing. It may create nodes and redirect uses
// but must not erase: runPatterns erases dead nodes afterwards. `uses` is up to date when a pattern
// is called.
#pragma once

#include "passes/match.h"

namespace cgc::passes {

using Pattern = bool (*)(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// identities.cpp: replaces a node by its input if they are equal (a view of the same layout, `to`
/// the same dtype, dropout, detach, times 1, minus 0). A cast of a lossless cast becomes one cast,
/// and rsub of tensors becomes sub.
bool dropIdentity(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// identities.cpp: a cast of an expanded tensor becomes an expand of the cast, which converts fewer
/// elements.
bool castBeforeExpand(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// copies.cpp: clone and every copying reshape become `contiguous` and a view.
bool normalizeCopy(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// copies.cpp: drops `contiguous` if all its readers, followed through views, can read the
/// original.
bool dropCopy(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// views.cpp: a chain of views becomes the shortest chain of the form `permute? view? (select |
/// slice)* permute? expand?`.
bool normalizeViews(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// linear_patterns.cpp: linears of one input by consecutive slices of one weight become one linear
/// and slices.
bool mergeLinears(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear_patterns.cpp: view(linear(x)) that only splits the rows becomes linear(view(x)).
bool unflattenLinear(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear_patterns.cpp: a view that only moves dimensions of size 1, such as the permutation of a
/// batch of one, moves after linear and layer_norm.
bool sinkView(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// linear_patterns.cpp: linear and layer_norm of permuted rows process the rows in memory order,
/// and the permutation moves after them.
bool sinkPermute(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

/// attention_patterns.cpp: _native_multi_head_attention without mask and attention weights becomes
/// linear, scaled_dot_product_attention, linear.
bool expandNativeMha(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// attention_patterns.cpp: a power of two that multiplies the query moves into `scale`.
bool foldQueryScale(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);
/// attention_patterns.cpp: like foldQueryScale for any factor. For selection, where the different
/// rounding is acceptable.
bool foldAnyQueryScale(ir::Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter);

} // namespace cgc::passes
