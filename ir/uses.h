// UseMap: the users of each value. Built from a graph on demand; stale after the next mutation.
#pragma once

#include "ir/graph.h"

#include "llvm/ADT/DenseMap.h"

namespace cgc::ir {

class UseMap {
public:
  explicit UseMap(const Graph &graph);
  /// Returns the nodes that take `value` as an argument, in graph order, each once.
  llvm::ArrayRef<Node *> users(const Value *value) const;
  bool hasOneUser(const Value *value) const { return users(value).size() == 1; }

private:
  llvm::DenseMap<const Value *, llvm::SmallVector<Node *, 2>> users_; ///< Never iterated.
};

} // namespace cgc::ir
