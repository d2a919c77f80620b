// GraphRewriter: graph mutation for passes.
#include "ir/rewriter.h"

#include "runtime/base/check.h"

namespace cgc::ir {

Result<Node *> GraphRewriter::tryCreate(OpKind op, std::vector<Arg> args, const Node &root,
                                        Node *before) {
  auto inferred = inferResults(op, args, root.result()->tensor().device);
  if (!inferred)
    return inferred.status();
  Node *node =
      graph_.call(op, std::move(args), static_cast<unsigned>(inferred->size()), root.loc(), before);
  for (unsigned i = 0; i < node->numResults(); ++i)
    node->result(i)->setType((*inferred)[i].type);
  changed_ = true;
  return node;
}

Node *GraphRewriter::create(OpKind op, std::vector<Arg> args, const Node &root, Node *before) {
  Result<Node *> node = tryCreate(op, std::move(args), root, before);
  CGC_CHECK(node.isOk() && "a rewrite made a call that the op's rule refuses");
  return *node;
}

Node *GraphRewriter::getAttr(llvm::StringRef path, Type type, const Node &root, Node *before) {
  changed_ = true;
  return graph_.getAttr(path, std::move(type), root.loc(), before);
}

void GraphRewriter::replaceAllUsesWith(Value *from, Value *to) {
  CGC_CHECK((from->type().isDynamic() || to->type().isDynamic() ||
             (from->tensor().dtype == to->tensor().dtype &&
              from->tensor().sizes == to->tensor().sizes)) &&
            "a replacement has another dtype or shape");
  graph_.replaceAllUsesWith(from, to);
  changed_ = true;
}

void GraphRewriter::replace(Node *node, Value *to) {
  CGC_CHECK(node->numResults() == 1);
  replaceAllUsesWith(node->result(), to);
  graph_.erase(node);
}

void GraphRewriter::erase(Node *node) {
  graph_.erase(node);
  changed_ = true;
}

void GraphRewriter::setArg(Node *node, llvm::StringRef name, Arg arg) {
  node->setArg(name, std::move(arg));
  changed_ = true;
}

void GraphRewriter::setArgs(Node *node, std::vector<Arg> args) {
  node->setArgs(std::move(args));
  changed_ = true;
}

void GraphRewriter::replaceUsesAfter(Node *node, Value *from, Value *to) {
  graph_.replaceUsesAfter(*node, from, to);
  changed_ = true;
}

void GraphRewriter::makeFunctional(Node *node) {
  CGC_CHECK(node->isInPlace());
  node->setInPlace(false);
  replaceUsesAfter(node, aliasedArg(*node).value(), node->result());
}

Node *reinferTypes(Graph &graph) {
  for (Node &node : graph) {
    if (node.kind() != NodeKind::CallFunction || node.isInPlace())
      continue;
    auto inferred = inferResults(node.op(), node.args(), node.result()->tensor().device);
    if (!inferred || inferred->size() != node.numResults())
      return &node;
    for (unsigned i = 0; i < node.numResults(); ++i)
      node.result(i)->setType((*inferred)[i].type);
  }
  return nullptr;
}

} // namespace cgc::ir
