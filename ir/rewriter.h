// GraphRewriter: the only way in which passes change a graph once `specialize` has typed it. Keeps
// locations and remembers whether anything changed.
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

  /// Inserts a call before `before`, with `root`'s location and result types from the op's rule.
  /// Results inherit the device of `root`'s first result. Fails with the rule's reason if it
  /// refuses the arguments; nothing is changed then.
  Result<Node *> tryCreate(OpKind op, std::vector<Arg> args, const Node &root, Node *before);
  /// The same for arguments that the rule is known to accept, which is asserted: a pass of cgc
  /// checks before it rewrites.
  Node *create(OpKind op, std::vector<Arg> args, const Node &root, Node *before);
  /// Inserts a read of the owning module's parameter `path` before `before`, with this type and
  /// `root`'s location.
  Node *getAttr(llvm::StringRef path, Type type, const Node &root, Node *before);
  /// Points all users of `from` at `to`; `from` keeps its node. The types must be equal but for
  /// strides.
  void replaceUses(Value *from, Value *to);
  /// Points all users of `node`'s only result at `to` and erases `node`.
  void replace(Node *node, Value *to);
  /// What reads `from` behind `node` reads `to`. The types must be equal but for strides.
  void replaceUsesBehind(Node *node, Value *from, Value *to);
  void erase(Node *node);
  void setArg(Node *node, unsigned i, Arg arg);
  /// Makes an in-place call functional: what reads the overwritten value after it reads its result.
  void makeFunctional(Node *node);

private:
  Graph &graph_;
  bool changed_ = false;
};

/// Recomputes the result types of every view and compute node from its arguments, in order: after a
/// rewrite changed strides upstream. Returns the first node whose rule refuses, or null.
Node *reinferTypes(Graph &graph);

} // namespace cgc::ir
