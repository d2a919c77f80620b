// Copy patterns: normalize copies and drop redundant ones.
#include "passes/canonicalize/patterns.h"

namespace cgc::passes {

using ir::OpKind;

bool normalizeCopy(ir::Node &node, PatternRewriter &rewriter) {
  if (auto clone = ir::CloneOp::of(node)) {
    ir::Node *copy = rewriter.create(OpKind::Contiguous, {clone->self()}, node, &node);
    replaceAllUsesWith(rewriter, node.result(), copy->result());
    return true;
  }
  bool reshapes = node.is(OpKind::View) || node.is(OpKind::Reshape) || node.is(OpKind::Flatten) ||
                  node.is(OpKind::Unflatten);
  if (!reshapes || isView(node))
    return false;
  ir::Node *copy = rewriter.create(OpKind::Contiguous, {node.arg("self")}, node, &node);
  ir::Node *view = rewriter.create(
      OpKind::View, {copy->result(), ir::Arg::ints(node.result()->tensor().sizes)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), view->result());
  return true;
}

bool dropCopy(ir::Node &node, PatternRewriter &rewriter) {
  auto copy = ir::ContiguousOp::of(node);
  if (!copy || isView(node))
    return false;
  const ir::TensorType &type = copy->self()->tensor();
  if (const ir::Node *reader = findStridesRefused(node.result(), type))
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, type); });
  replaceAllUsesWith(rewriter, node.result(), copy->self());
  return true;
}

} // namespace cgc::passes
