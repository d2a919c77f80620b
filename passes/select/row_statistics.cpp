// requestRowStatistics(): which calls can have row statistics, and their form with them.
#include "passes/select/row_statistics.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

struct Call {
  OpKind op;
  std::vector<Arg> args;
};

/// Returns the call that computes `rows` and their row statistics, as its last result; nullopt if
/// there is none. Its results before that are, in order and from the last, those of the node of
/// `rows`. Kernels of other ops write no row statistics.
std::optional<Call> callWithStatistics(const Value *rows) {
  const Node &node = *rows->node();
  if (auto linear = ir::LinearOp::of(node); linear && linear->weight()->tensor().rank() == 2)
    return Call{OpKind::CgcLinear,
                {linear->input(), linear->weight(), node.arg("bias"), Arg(), "none", true, false}};
  if (auto norm = ir::LayerNormOp::of(node); norm && norm->normalizedShape().size() == 1)
    return Call{OpKind::CgcAddLayerNorm,
                {norm->input(), Arg(), node.arg("weight"), node.arg("bias"), norm->eps(), true}};
  if (auto embedding = ir::EmbeddingOp::of(node))
    return Call{OpKind::CgcEmbedding, {embedding->indices(), embedding->weight(), Arg(), true}};
  auto norm = ir::CgcAddLayerNormOp::of(node);
  if ((norm && !norm->addend() && rows->index() == 1) || node.is(OpKind::CgcLinear) ||
      node.is(OpKind::CgcNormLinear) || node.is(OpKind::CgcEmbedding) || node.is(OpKind::CgcConv2d))
    return Call{node.op(), node.argsWith("row_statistics", true)};
  return std::nullopt;
}

} // namespace

Value *requestRowStatistics(Value *x, ir::GraphRewriter &rewriter) {
  Value *rows = layoutOf(x).base;
  const ir::TensorType &type = x->tensor(), &base = rows->tensor();
  if (!type.isContiguous() || !base.isContiguous() || type.rank() == 0 || base.rank() == 0 ||
      type.sizes.back() != base.sizes.back() || type.numElements() != base.numElements())
    return nullptr;
  Node &node = *rows->node();
  if (node.kind() != ir::NodeKind::CallFunction)
    return nullptr;
  std::optional<Call> call = callWithStatistics(rows);
  if (!call)
    return nullptr;
  if (call->op == node.op() && llvm::ArrayRef(call->args) == node.args())
    return node.result(node.numResults() - 1);
  const auto created = rewriter.tryCreate(call->op, std::move(call->args), node, &node);
  if (!created)
    return nullptr;
  const unsigned first = (*created)->numResults() - 1 - node.numResults();
  for (Value &result : node.results())
    replaceAllUsesWith(rewriter, &result, (*created)->result(first + result.index()));
  return (*created)->result((*created)->numResults() - 1);
}

} // namespace cgc::passes
