// DOT: a graph as a DotGraph. LLVM's GraphWriter is not used because it names nodes by their
// addresses.
#include "ir/text/dot.h"

#include "ir/fallback.h"
#include "ir/op_def.h"
#include "ir/text/op_class.h"
#include "ir/text/text.h"
#include "support/dot_graph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::ir {
namespace {

OpClass classOf(const Node &node) {
  switch (node.kind()) {
  case NodeKind::Placeholder:
  case NodeKind::Output:
    return OpClass::Io;
  case NodeKind::GetAttr:
    return OpClass::Weight;
  case NodeKind::CallModule:
    return OpClass::Module;
  case NodeKind::CallFunction:
    break;
  }
  return classOf(node.op());
}

/// Returns the node's label: without results, types, and the values that edges show.
std::string labelOf(const Node &node) {
  switch (node.kind()) {
  case NodeKind::Placeholder:
    return node.result()->name();
  case NodeKind::GetAttr:
    return node.target();
  case NodeKind::CallModule:
    return "call " + node.target();
  case NodeKind::Output:
    return "output";
  case NodeKind::CallFunction:
    break;
  }
  if (node.is(OpKind::Fallback))
    return fallbackName(node).full.str();
  auto [space, name] = opName(node.op()).split('.');
  std::string label = (space == "cgc" ? "cgc." : "") + name.str() + (node.isInPlace() ? "_" : "");
  const Schema &schema = opSchema(node.op());
  if (node.args().size() != schema.args.size())
    return label;
  for (const auto &[expected, arg] : llvm::zip(schema.args, node.args())) {
    bool isDefault = expected.defaultValue && argText(*expected.defaultValue) == argText(arg);
    if (arg.isConstant() && !isDefault)
      label += "\n" + expected.name + "=" + argText(arg);
  }
  return label;
}

/// Returns "f16[3072,1024]", without strides and device.
std::string shapeText(const Type &type) {
  return type.isTensor()
             ? toString(Type(TensorType::dense(type.tensor().dtype, type.tensor().sizes)))
             : "";
}

/// Returns true if `value` is a parameter that the label of `reader` shows, instead of a node.
bool isShownInLabel(const Value &value, const Node &reader) {
  return value.node()->kind() == NodeKind::GetAttr && reader.kind() != NodeKind::Output;
}

DotGraph::Node drawn(const Node &node, size_t position) {
  DotGraph::Node result;
  // The first result names the node; a node without results is named by its position.
  result.id = node.numResults() ? "%" + node.result()->name() : "#" + std::to_string(position);
  result.label = labelOf(node);
  result.tooltip = node.loc().isKnown() ? toString(node.loc()) : "";
  result.path = node.loc().module;
  result.style = styleOf(classOf(node));
  // Each block has its own weights, so their names are left out.
  result.signature = node.kind() == NodeKind::GetAttr ? "weight" : result.label;
  for (const Value &value : node.results())
    result.signature += " " + toString(value.type());
  node.forEachInput([&](const Value *value) {
    if (!isShownInLabel(*value, node))
      return;
    // Omits the module path prefix that both share.
    llvm::StringRef name = value->node()->target(), path = node.loc().module;
    while (!path.empty() && name.split('.').first == path.split('.').first) {
      name = name.split('.').second;
      path = path.split('.').second;
    }
    result.label += "\n" + name.str() + " " + shapeText(value->type());
    result.signature += " weight " + toString(value->type());
  });
  return result;
}

} // namespace

void writeDot(llvm::raw_ostream &os, const Graph &graph) {
  DotGraph drawing(graph.name());
  llvm::DenseSet<const Node *> read; // Looked up, never iterated.
  for (const Node &node : graph)
    node.forEachInput([&](const Value *value) {
      if (!isShownInLabel(*value, node))
        read.insert(value->node());
    });
  llvm::DenseMap<const Node *, unsigned> indices; // Looked up, never iterated.
  for (const auto &[position, node] : llvm::enumerate(graph)) {
    if (node.kind() == NodeKind::GetAttr && !read.contains(&node))
      continue;
    const unsigned index = drawing.addNode(drawn(node, position));
    indices[&node] = index;
    node.forEachInput([&](const Value *value) {
      if (!isShownInLabel(*value, node))
        drawing.addEdge(indices.lookup(value->node()), index, shapeText(value->type()));
    });
  }
  drawing.write(os);
}

} // namespace cgc::ir
