// select-rows: replaces pooling by one row of each sequence with cgc.rows.
#include "passes/canonicalize/run_patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// x[:, 0] is a free view; it becomes a copy only if prune-rows then saves more.
bool selectFirstRow(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Select) || node.arg("dim") != Arg(1) || node.arg("index") != Arg(0))
    return false;
  Value *sequences = node.arg("self").value();
  const Node &source = *sequences->node();
  if (sequences->tensor().rank() != 3 || source.kind() != ir::NodeKind::CallFunction ||
      !uses.hasOneUser(sequences))
    return false;
  switch (source.op()) {
  case OpKind::LayerNorm:
  case OpKind::AddLayerNorm:
  case OpKind::Linear:
  case OpKind::FusedLinear:
  case OpKind::FusedAttention:
  case OpKind::To:
    break;
  default:
    return false;
  }
  Node *rows = rewriter.create(OpKind::Rows, {sequences, Arg()}, node, &node);
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
bool selectNamedRow(Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Index))
    return false;
  Value *sequences = node.arg("self").value();
  const Arg::List &indices = node.arg("indices").list();
  const ir::Dims &sizes = sequences->tensor().sizes;
  if (sizes.size() != 3 || indices.size() != 2 || !indices[0].isValue() || !indices[1].isValue())
    return false;
  Value *batch = indices[0].value(), *row = indices[1].value();
  Node *argmax = definingOp(row, OpKind::Argmax);
  if (!argmax || !argmax->arg("dim").is<int64_t>() || row->tensor().sizes != ir::Dims{sizes[0]} ||
      batch->tensor().sizes != ir::Dims{sizes[0]} || !isIota(batch))
    return false;
  const ir::Dims &scores = argmax->arg("self").value()->tensor().sizes;
  int64_t dim = argmax->arg("dim").as<int64_t>();
  if (scores[dim < 0 ? dim + static_cast<int64_t>(scores.size()) : dim] != sizes[1])
    return false;
  Node *rows = rewriter.create(OpKind::Rows, {sequences, row}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), rows->result());
  return true;
}

constexpr Pattern kPatterns[] = {selectFirstRow, selectNamedRow};

} // namespace

/// Replaces pooling by the first row, or by the row that an argmax selects, by cgc.rows, where
/// prune-rows benefits.
struct SelectRowsPass {
  static constexpr const char *name = "select-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectRowsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectRowsPass)

} // namespace cgc::passes
