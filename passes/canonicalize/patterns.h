// patterns: the canonicalization patterns (passes/pattern.h).
#pragma once

#include "passes/match.h"
#include "passes/pattern.h"

namespace cgc::passes {

/// identities.cpp: replaces a node by its input if they are equal (a view of the same layout,
/// dropout, detach outside of training, times 1, minus 0). A cast of a lossless cast becomes one
/// cast, and rsub of tensors becomes sub.
bool dropIdentity(ir::Node &node, PatternRewriter &rewriter);
/// identities.cpp: drops a cast to the dtype that its input has.
bool dropEqualCast(ir::Node &node, PatternRewriter &rewriter);

/// identities.cpp: a cast of an expanded tensor becomes an expand of the cast, which converts fewer
/// elements.
bool castBeforeExpand(ir::Node &node, PatternRewriter &rewriter);

/// copies.cpp: clone and every copying reshape become `contiguous` and a view.
bool normalizeCopy(ir::Node &node, PatternRewriter &rewriter);
/// copies.cpp: drops `contiguous` if all its readers, followed through views, can read the
/// original.
bool dropCopy(ir::Node &node, PatternRewriter &rewriter);

/// views.cpp: a chain of views becomes the shortest chain of the form `permute? view? (select |
/// slice)* permute? expand?`.
bool normalizeViews(ir::Node &node, PatternRewriter &rewriter);

/// linear_patterns.cpp: linears of one input by consecutive slices of one weight become one linear
/// and slices.
bool mergeLinears(ir::Node &node, PatternRewriter &rewriter);
/// linear_patterns.cpp: matmul of matrices of one column by matrices of one row becomes mul.
bool multiplyOuterProduct(ir::Node &node, PatternRewriter &rewriter);
/// linear_patterns.cpp: view(linear(x)) that only splits the rows becomes linear(view(x)).
bool unflattenLinear(ir::Node &node, PatternRewriter &rewriter);
/// linear_patterns.cpp: a view that only moves dimensions of size 1, such as the permutation of a
/// batch of one, moves after linear and layer_norm.
bool sinkView(ir::Node &node, PatternRewriter &rewriter);
/// linear_patterns.cpp: linear and layer_norm of permuted rows process the rows in memory order,
/// and the permutation moves after them.
bool sinkPermute(ir::Node &node, PatternRewriter &rewriter);

/// attention_patterns.cpp: a power of two that multiplies the query moves into `scale`.
bool foldQueryScale(ir::Node &node, PatternRewriter &rewriter);
/// attention_patterns.cpp: like foldQueryScale for any factor. For selection, where the different
/// rounding is acceptable.
bool foldAnyQueryScale(ir::Node &node, PatternRewriter &rewriter);

/// composite_ops.cpp: an op of ATen that is composed of others becomes these (OpDef::decompose).
bool decomposeAten(ir::Node &node, PatternRewriter &rewriter);

} // namespace cgc::passes
