// Specializer: in-place ops whose effect the compiled model would lose.
#include "ir/fallback.h"
#include "ir/op_def.h"
#include "passes/canonicalize/in_place.h"
#include "passes/specialize/specializer.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

using Nodes = llvm::DenseSet<const Node *>; // Looked up, never iterated.

/// Returns true if aliasedArg and the result of `node` may alias.
bool mayAlias(const Node &node) {
  if (node.kind() != ir::NodeKind::CallFunction || node.args().empty() ||
      !ir::aliasedArg(node).isValue())
    return false;
  if (node.isInPlace() || !ir::hasTrait(node.op(), ir::kView))
    return node.isInPlace();
  const auto inferred = ir::inferResults(node.op(), node.args(), DeviceKind::Cpu);
  return !inferred || inferred->front().viewOffset;
}

/// Returns the argument that `node` overwrites, whether or not cgc can compile the node; none if it
/// overwrites nothing.
Arg written(const Node &node) {
  if (node.kind() != ir::NodeKind::CallFunction)
    return {};
  if (node.isInPlace())
    return ir::aliasedArg(node);
  if (!node.is(OpKind::Fallback) || !isInPlaceName(ir::fallbackName(node).op))
    return {};
  const Arg &operands = node.arg("args");
  return operands.isList() && !operands.list().empty() ? operands.list().front() : Arg();
}

/// Returns the name of the substitution whose original contains `node`; null if there is none.
const std::string *substitutionOf(const Node &node) {
  unsigned inner = 0;
  const auto begin = node.graph()->begin();
  for (ir::Graph::iterator it(const_cast<Node &>(node)); it != begin;) {
    --it;
    if (it->is(OpKind::PrimEndIf))
      ++inner;
    else if (it->is(OpKind::PrimIf) && inner > 0)
      --inner;
    else if (const std::string *name =
                 it->is(OpKind::PrimIf) ? it->arg("condition").getIf<std::string>() : nullptr)
      return name;
  }
  return nullptr;
}

/// Erases from `copy`, a clone of `graph`, all nodes that functionalize cannot handle. Nodes that
/// certainly run, have types and fit their rules stay.
void keepTyped(const ir::Graph &graph, ir::Graph &copy, const Nodes &vanished, DeviceKind target) {
  llvm::DenseSet<const Value *> kept; // Looked up, never iterated.
  std::vector<Node *> dropped;
  for (auto [node, twin] : llvm::zip(graph, copy)) {
    if (twin.kind() == ir::NodeKind::Output) {
      std::vector<Arg> outputs;
      for (const Arg &arg : twin.args())
        if (arg.isValue() && kept.contains(arg.value()))
          outputs.push_back(arg);
      twin.setArgs(std::move(outputs));
      twin.graph()->setOutputNames({});
      continue;
    }
    bool stays = !vanished.contains(&node) && twin.kind() != ir::NodeKind::CallModule &&
                 twin.numResults() > 0 &&
                 llvm::all_of(twin.results(), [](const Value &value) { return value.isTensor(); });
    twin.forEachInput([&, &stays = stays](Value *value) { stays &= kept.contains(value); });
    if (stays && twin.kind() == ir::NodeKind::CallFunction) {
      const auto inferred = ir::inferResults(twin.op(), twin.args(), target);
      stays =
          inferred && inferred->size() == twin.numResults() &&
          (!twin.isInPlace() || (inferred->front().type.dtype == twin.result()->tensor().dtype &&
                                 inferred->front().type.sizes == twin.result()->tensor().sizes));
    }
    if (!stays)
      dropped.push_back(&twin);
    else
      for (const Value &value : twin.results())
        kept.insert(&value);
  }
  for (Node *node : llvm::reverse(dropped))
    copy.erase(node);
}

} // namespace

const Node &ownerOf(const Value *value) {
  const Node *node = value->node();
  while (mayAlias(*node))
    node = ir::aliasedArg(*node).value()->node();
  return *node;
}

void Specializer::rememberReplaced(Node &node) {
  Arg value = branches_.isSkipped() ? Arg() : written(node);
  resolve(value);
  if (value.isValue())
    replaced_.emplace_back(&node, value.value());
}

void Specializer::diagnoseReplaced() {
  const Nodes vanished(toErase_.begin(), toErase_.end());
  for (const auto &[node, value] : replaced_) {
    const std::string *substitution = substitutionOf(*node);
    if (!substitution)
      continue;
    const Node &owner = ownerOf(value);
    const Node *reader = nullptr;
    for (auto it = std::next(node->getIterator()); it != graph_.end() && !reader; ++it)
      if (!vanished.contains(&*it))
        it->forEachInput([&](Value *input) {
          if (&ownerOf(input) == &owner)
            reader = &*it;
        });
    if (!reader)
      continue;
    substitutionAtFault_ = true;
    diagnostics_.error(*node, "substitution '" + *substitution +
                                  "' replaces this in-place op, and what it overwrites is still "
                                  "in use: " +
                                  readBy(*reader) +
                                  "; replace a module around both, or use the op's form without "
                                  "the underscore in the model");
  }
}

void Specializer::diagnoseViews() {
  const Nodes vanished(toErase_.begin(), toErase_.end());
  if (llvm::none_of(graph_, [&](const Node &node) {
        return node.kind() == ir::NodeKind::CallFunction && node.isInPlace() &&
               !vanished.contains(&node);
      }))
    return;
  const auto copy = graph_.clone(graph_.name());
  keepTyped(graph_, *copy, vanished, target_);
  ir::Diagnostics found;
  functionalize(*copy, found);
  for (const ir::Diagnostic &error : found.errors()) // The other errors have been reported.
    if (error.cause == ir::Cause::MutatesView)
      diagnostics_.error(error);
}

} // namespace cgc::passes
