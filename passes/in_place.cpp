// In-place ops: functional where nobody can tell the difference, refused where somebody can.
#include "passes/in_place.h"

#include "ir/text.h"
#include "passes/patterns/match.h"

#include "llvm/ADT/DenseSet.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::Value;

std::string readBy(const Node &reader) {
  return reader.kind() == ir::NodeKind::Output
             ? "the model returns it"
             : "it is read at " +
                   (reader.loc().isKnown() ? toString(reader.loc()) : toString(reader));
}

/// Why the effect of `node` on its first argument can be seen otherwise than by its result; empty
/// if it cannot.
std::string whoSees(Node &node) {
  Value *overwritten = node.arg(0).value();
  Value *base = layoutOf(overwritten).base;
  // Other names of the same memory from before that are read afterwards.
  ir::Graph &graph = *node.graph();
  llvm::DenseSet<const Value *> aliases; // Looked up, never iterated.
  auto it = graph.begin();
  for (; &*it != &node; ++it)
    for (Value &value : it->results())
      if (&value != overwritten && value.isTensor() && layoutOf(&value).base == base)
        aliases.insert(&value);
  std::string reason;
  for (++it; it != graph.end() && reason.empty(); ++it)
    it->forEachInput([&](Value *input) {
      if (reason.empty() && aliases.contains(input))
        reason = "another view of what it overwrites, %" + input->name() +
                 ", is still in use: " + readBy(*it) + "; clone before";
    });
  return reason;
}

} // namespace

Overwritten overwritten(Node &node) {
  const Value *base = layoutOf(node.arg(0).value()).base;
  if (base->node()->kind() == ir::NodeKind::Placeholder)
    return {ir::Cause::MutatesInput, "it overwrites the input '" + base->name() + "'"};
  if (base->node()->kind() == ir::NodeKind::GetAttr)
    return {ir::Cause::MutatesState,
            "it overwrites the parameter '" + base->node()->target() + "'"};
  return {};
}

bool functionalize(ir::Graph &graph, ir::Diagnostics &diagnostics) {
  ir::GraphRewriter rewriter(graph);
  for (Node &node : graph) {
    if (node.kind() != ir::NodeKind::CallFunction || !node.isInPlace())
      continue;
    if (const Overwritten what = overwritten(node); what.cause != ir::Cause::None)
      diagnostics.error(node, "in-place op: " + what.message, what.cause);
    else if (std::string reason = whoSees(node); !reason.empty())
      diagnostics.error(node, "in-place op: " + reason);
    rewriter.makeFunctional(&node);
    [[maybe_unused]] Node *refused = ir::reinferTypes(graph);
    assert(!refused && "an in-place op gave another type than its functional form");
  }
  return rewriter.changed();
}

} // namespace cgc::passes
