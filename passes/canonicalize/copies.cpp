// Copy patterns: normalize copies and drop redundant ones.
#include "passes/canonicalize/patterns.h"

namespace cgc::passes {

using ir::OpKind;

bool normalizeCopy(ir::Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  bool reshapes = node.is(OpKind::View) || node.is(OpKind::Reshape) || node.is(OpKind::Flatten) ||
                  node.is(OpKind::Unflatten);
  if (node.is(OpKind::Clone)) {
    ir::Node *copy = rewriter.create(OpKind::Contiguous, {node.arg(0)}, node, &node);
    replaceAllUsesWith(rewriter, node.result(), copy->result());
    return true;
  }
  if (!reshapes || isView(node))
    return false;
  ir::Node *copy = rewriter.create(OpKind::Contiguous, {node.arg(0)}, node, &node);
  ir::Node *view = rewriter.create(
      OpKind::View, {copy->result(), ir::Arg::ints(node.result()->tensor().sizes)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), view->result());
  return true;
}

bool dropCopy(ir::Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Contiguous) || isView(node))
    return false;
  ir::Value *original = node.arg(0).value();
  if (!acceptsStrides(node.result(), original->tensor()))
    return false;
  replaceAllUsesWith(rewriter, node.result(), original);
  return true;
}

} // namespace cgc::passes
