// findScopes: opens and closes scopes while it walks the nodes in order.
#include "frontend/exported/scopes.h"

#include "llvm/ADT/StringRef.h"

namespace cgc::exported {
namespace {

bool isBelow(llvm::StringRef path, llvm::StringRef module) {
  return !path.empty() && (module.empty() || (path.consume_front(module) && path.starts_with(".")));
}

/// The calls around a node, without that of the root.
llvm::ArrayRef<ModuleCall> callsOf(const Node &node) {
  llvm::ArrayRef<ModuleCall> calls = node.modules;
  if (!calls.empty() && calls.front().path.empty())
    calls = calls.drop_front();
  size_t count = 0;
  llvm::StringRef parent;
  while (count < calls.size() && isBelow(calls[count].path, parent))
    parent = calls[count++].path;
  return calls.take_front(count);
}

} // namespace

Scope findScopes(const std::vector<Node> &nodes) {
  Scope root;
  root.end = nodes.size();
  // Pointers into `children` stay valid: only the innermost open scope gets children.
  std::vector<Scope *> open = {&root};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].modules.empty()) // Torch adds such nodes, which belong to those around them.
      continue;
    if (nodes[i].modules.front().path.empty() && root.className.empty())
      root.className = nodes[i].modules.front().className;
    const llvm::ArrayRef<ModuleCall> calls = callsOf(nodes[i]);
    size_t common = 0;
    while (common < calls.size() && common + 1 < open.size() &&
           calls[common].key == open[common + 1]->key)
      ++common;
    for (; open.size() > common + 1; open.pop_back())
      open.back()->end = i;
    for (const ModuleCall &call : calls.drop_front(common)) {
      open.back()->children.push_back({call.key, call.path, call.className, i, i, {}});
      open.push_back(&open.back()->children.back());
    }
  }
  for (; open.size() > 1; open.pop_back())
    open.back()->end = nodes.size();
  return root;
}

} // namespace cgc::exported
