// UseMap: collects the users of each value.
#include "ir/uses.h"

namespace cgc::ir {

UseMap::UseMap(const Graph &graph) {
  for (const Node &node : graph)
    node.forEachInput([&](Value *value) {
      auto &users = users_[value];
      if (users.empty() || users.back() != &node)
        users.push_back(const_cast<Node *>(&node));
    });
}

llvm::ArrayRef<Node *> UseMap::users(const Value *value) const {
  auto it = users_.find(value);
  return it == users_.end() ? llvm::ArrayRef<Node *>() : llvm::ArrayRef<Node *>(it->second);
}

} // namespace cgc::ir
