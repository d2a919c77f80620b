// select-rows: replaces pooling by one row of each sequence with cgc.rows.
#include "ir/text/text.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns true if prune-rows can move a cgc.rows above `source` and thereby saves more than a copy
/// costs. It also moves one above pointwise ops, for which alone the copy does not pay.
bool isWorthPruning(const Node &source) {
  return source.kind() == ir::NodeKind::CallFunction &&
         (source.is(OpKind::CgcAttention) || !ir::rowArgs(source).empty());
}

/// x[:, 0] is a free view; it becomes a copy only if prune-rows then saves more.
bool selectFirstRow(Node &node, PatternRewriter &rewriter) {
  auto select = ir::SelectOp::of(node);
  if (!select || select->dim() != 1 || select->index() != 0 || select->self()->tensor().rank() != 3)
    return false;
  Value *sequences = select->self();
  if (!isWorthPruning(*sequences->node()))
    return rewriter.notifyMatchFailure(
        node, [&] { return "prune-rows cannot prune " + ir::toString(*sequences->node()); });
  if (!sequences->hasOneUser())
    return rewriter.notifyMatchFailure(node, "other rows are used too");
  Node *rows = rewriter.create(OpKind::CgcRows, {sequences, Arg()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), rows->result());
  return true;
}

/// Returns true if `value` is 0, 1, 2, ...
bool isIota(Value *value) {
  auto elements = elementsOf(value);
  if (!elements || isFloating(value->tensor().dtype))
    return false;
  for (size_t i = 0; i < elements->size(); ++i)
    if ((*elements)[i] != static_cast<double>(i))
      return false;
  return true;
}

/// Matches x[arange(B), argmax]. The index is in bounds if the argmax is over as many elements as
/// there are rows.
bool selectNamedRow(Node &node, PatternRewriter &rewriter) {
  auto index = ir::IndexOp::of(node);
  if (!index)
    return false;
  Value *sequences = index->self();
  const Arg::List &indices = index->indices().list();
  const ir::Dims &sizes = sequences->tensor().sizes;
  if (sizes.size() != 3 || indices.size() != 2 || !indices[0].isValue() || !indices[1].isValue())
    return rewriter.notifyMatchFailure(node, "it does not take rows of [B, T, E] by two indices");
  Value *batch = indices[0].value(), *row = indices[1].value();
  auto argmax = ir::ArgmaxOp::of(row);
  if (!argmax || !argmax->dim() || row->tensor().sizes != ir::Dims{sizes[0]})
    return rewriter.notifyMatchFailure(node, "the second index is not an argmax for each sequence");
  if (batch->tensor().sizes != ir::Dims{sizes[0]} || !isIota(batch))
    return rewriter.notifyMatchFailure(node, "the first index is not known to be 0, 1, 2, ...");
  const ir::Dims &scores = argmax->self()->tensor().sizes;
  int64_t dim = *argmax->dim();
  if (scores[dim < 0 ? dim + static_cast<int64_t>(scores.size()) : dim] != sizes[1])
    return rewriter.notifyMatchFailure(node, "the argmax is over another number of rows");
  Node *rows = rewriter.create(OpKind::CgcRows, {sequences, row}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), rows->result());
  return true;
}

constexpr Pattern kSelectRowsPatterns[] = {
    CGC_PATTERN(selectFirstRow),
    CGC_PATTERN(selectNamedRow),
};

} // namespace

/// Replaces pooling by the first row, or by the row that an argmax selects, by cgc.rows, where
/// prune-rows benefits.
struct SelectRowsPass {
  static constexpr const char *name = "select-rows";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectRowsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectRowsPatterns, context);
}

CGC_DEFINE_PASS(SelectRowsPass)

} // namespace cgc::passes
