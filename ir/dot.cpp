// DOT: a graph as Graphviz text, written directly: LLVM's GraphWriter names nodes by their
// addresses.
#include "ir/dot.h"

#include "ir/op_def.h"
#include "ir/text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

namespace cgc::ir {
namespace {

/// A DOT string. `\l` and the like are not used by us, so every backslash is a literal one.
std::string dotString(llvm::StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out += '"';
}

/// The first result names the node; a node without results is numbered by its position.
std::string nodeId(const Node &node, size_t position) {
  return dotString(node.numResults() ? "%" + node.result()->name()
                                     : "#" + std::to_string(position));
}

struct Style {
  const char *shape, *fill;
};

/// Colours tell apart what costs time (matrix products), what moves through memory, and what is
/// free.
Style styleOf(const Node &node) {
  switch (node.kind()) {
  case NodeKind::Placeholder:
  case NodeKind::Output:
    return {"oval", "#ffffff"};
  case NodeKind::GetAttr:
    return {"note", "#f2f2f2"};
  case NodeKind::CallModule:
    return {"component", "#e6d9f2"};
  case NodeKind::CallFunction:
    break;
  }
  switch (node.op()) {
  case OpKind::Linear:
  case OpKind::Matmul:
  case OpKind::Addmm:
  case OpKind::Baddbmm:
  case OpKind::Conv2d:
  case OpKind::Attention:
  case OpKind::NativeMha:
    return {"box", "#f7c6a3"};
  case OpKind::Fallback:
    return {"box", "#f4a6a6"};
  default:
    break;
  }
  if (hasTrait(node.op(), kHost))
    return {"box", "#fff3b0"};
  if (hasTrait(node.op(), kView))
    return {"box", "#dcefdc"};
  return {"box", "#cfe2f3"};
}

/// What the node does, without its results, types and the values that the edges show.
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
    return llvm::StringRef(node.target()).split('(').first.str();
  std::string label = opName(node.op()).split('.').second.str() + (node.isInPlace() ? "_" : "");
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

/// The nodes of one module path, by position, and its submodules in order of name.
struct Cluster {
  std::vector<std::pair<size_t, const Node *>> nodes;
  std::map<std::string, Cluster> children;
};

class Writer {
public:
  explicit Writer(llvm::raw_ostream &os) : os_(os) {}

  void write(const Graph &graph) {
    Cluster root;
    for (const auto &[position, node] : llvm::enumerate(graph))
      clusterOf(root, node.loc().module).nodes.emplace_back(position, &node);
    os_ << "digraph " << dotString(graph.name()) << " {\n"
        << "  label=" << dotString(graph.name()) << ";\n"
        << "  fontname=\"Helvetica\"; rankdir=TB;\n"
        << "  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n"
        << "  edge [fontname=\"Helvetica\", fontsize=8];\n";
    writeCluster(root, "", 2);
    for (const auto &[position, node] : llvm::enumerate(graph))
      writeEdges(node, nodeId(node, position));
    os_ << "}\n";
  }

private:
  static Cluster &clusterOf(Cluster &root, llvm::StringRef path) {
    Cluster *cluster = &root;
    // A path from a hostile file must not nest without end; the rest of it shares the last cluster.
    for (unsigned depth = 0; depth < 64 && !path.empty(); ++depth) {
      auto [head, rest] = path.split('.');
      cluster = &cluster->children[head.str()];
      path = rest;
    }
    return *cluster;
  }

  void writeCluster(const Cluster &cluster, const std::string &path, unsigned indent) {
    for (const auto &[position, node] : cluster.nodes) {
      Style style = styleOf(*node);
      os_.indent(indent) << nodeId(*node, position) << " [label=" << dotString(labelOf(*node))
                         << ", shape=" << style.shape << ", fillcolor=\"" << style.fill << "\"];\n";
    }
    for (const auto &[name, child] : cluster.children) {
      std::string childPath = path.empty() ? name : path + "." + name;
      os_.indent(indent) << "subgraph " << dotString("cluster_" + childPath) << " {\n";
      os_.indent(indent + 2) << "label=" << dotString(childPath)
                             << "; color=\"#999999\"; style=rounded;\n";
      writeCluster(child, childPath, indent + 2);
      os_.indent(indent) << "}\n";
    }
  }

  void writeEdges(const Node &node, const std::string &id) {
    node.forEachInput([&](const Value *value) {
      const Node &from = *value->node();
      std::string label = from.numResults() > 1 ? "%" + value->name() + " " : "";
      if (value->isTensor())
        label += toString(value->type());
      os_ << "  " << dotString("%" + from.result()->name()) << " -> " << id;
      if (!label.empty())
        os_ << " [label=" << dotString(label) << "]";
      os_ << ";\n";
    });
  }

  llvm::raw_ostream &os_;
};

} // namespace

void writeDot(llvm::raw_ostream &os, const Graph &graph) {
  Writer(os).write(graph);
}

} // namespace cgc::ir
