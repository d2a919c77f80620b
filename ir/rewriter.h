// GraphRewriter: the only way for passes to change a graph once `specialize` has typed it. Keeps
// locations and records whether anything changed.
#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

namespace cgc::ir {

class GraphRewriter {
public:
  /// Borrows `graph`.
  explicit GraphRewriter(Graph &graph) : graph_(graph) {}

  Graph &graph() { return graph_; }
  bool changed() const { return changed_; }

  /// Inserts a call before `before`, with the location of `root` and result types from the op's
  /// rule. Results get the device of `root`'s first result. If the rule refuses the arguments,
  /// returns its reason and changes nothing.
  Result<Node *> tryCreate(OpKind op, std::vector<Arg> args, const Node &root, Node *before);
  /// Like tryCreate, for arguments that the caller has checked: asserts that the rule accepts them.
  Node *create(OpKind op, std::vector<Arg> args, const Node &root, Node *before);
  /// Inserts a get_attr of the owning module's parameter `path` before `before`, with this type and
  /// the location of `root`.
  Node *getAttr(llvm::StringRef path, Type type, const Node &root, Node *before);
  /// Replaces all uses of `from` with `to`; the node of `from` stays. The types may differ only in
  /// strides.
  void replaceAllUsesWith(Value *from, Value *to);
  /// Replaces all uses of the only result of `node` with `to`, and erases `node`.
  void replace(Node *node, Value *to);
  /// Replaces the uses of `from` in nodes after `node` with `to`. The types may differ only in
  /// strides.
  void replaceUsesAfter(Node *node, Value *from, Value *to);
  /// Erases a node, which must have no users.
  void erase(Node *node);
  /// Replaces the argument with this name in the op's schema.
  void setArg(Node *node, llvm::StringRef name, Arg arg);
  void setArgs(Node *node, std::vector<Arg> args);
  /// Makes an in-place call functional: later uses of the overwritten value become uses of its
  /// result.
  void makeFunctional(Node *node);

private:
  Graph &graph_;
  bool changed_ = false;
};

/// Recomputes the result types of every view and compute node from its arguments, in order, after a
/// rewrite changed strides upstream. Returns the first node whose rule refuses, or null.
Node *reinferTypes(Graph &graph);

} // namespace cgc::ir
