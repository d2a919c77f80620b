// DotGraph: clusters, collapsed repeated blocks, and the Graphviz text.
#include "support/dot_graph.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace cgc {
namespace {

/// Returns `c`, or '?' where the output must be printable UTF-8 and `c` is not.
char shown(char c, bool isUtf8) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n') || byte == 0x7f || (byte >= 0x80 && !isUtf8) ? '?' : c;
}

/// Returns `text` as a quoted DOT string. Labels use no DOT escapes such as `\l`, so every
/// backslash is escaped.
std::string dotString(llvm::StringRef text) {
  const bool isUtf8 = llvm::json::isUTF8(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\')
      out += '\\';
    out += shown(c, isUtf8);
  }
  return out += '"';
}

bool isNumber(llvm::StringRef name) {
  return !name.empty() && llvm::all_of(name, llvm::isDigit);
}

/// The nodes of one module path, and its submodules, both in execution order.
struct Cluster {
  std::string name; ///< One component of the path.
  std::vector<unsigned> nodes;
  std::vector<std::unique_ptr<Cluster>> children;
  size_t repeats = 1;   ///< This cluster stands for this many consecutive ones, itself included.
  std::string lastName; ///< The name of the last of them.

  Cluster &child(llvm::StringRef component) {
    // Searches backwards: consecutive nodes mostly belong to the same module.
    for (auto &existing : llvm::reverse(children))
      if (existing->name == component)
        return *existing;
    children.push_back(std::make_unique<Cluster>());
    children.back()->name = component.str();
    return *children.back();
  }

  void collectNodes(std::vector<unsigned> &all) const {
    llvm::append_range(all, nodes);
    for (const auto &child : children)
      child->collectNodes(all);
  }
};

} // namespace

std::string markupText(llvm::StringRef text) {
  const bool isUtf8 = llvm::json::isUTF8(text);
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += shown(c, isUtf8);
  }
  return out;
}

/// Puts the nodes into clusters, collapses repeated clusters, and writes the remaining ones.
class DotLayout {
public:
  DotLayout(const DotGraph &graph, llvm::raw_ostream &os) : graph_(graph), os_(os) {}

  void write() {
    for (unsigned i = 0; i < graph_.nodes_.size(); ++i) {
      clusterOf(graph_.nodes_[i].path).nodes.push_back(i);
      standsFor_.push_back(i);
    }
    incoming_.resize(graph_.nodes_.size());
    for (const DotGraph::Edge &edge : graph_.edges_)
      incoming_[edge.to].push_back(&edge);
    if (graph_.nodes_.size() >= DotGraph::kCollapseFrom)
      collapse(root_);
    os_ << "digraph " << dotString(graph_.title_) << " {\n"
        << "  fontname=\"Helvetica\"; rankdir=TB; ranksep=0.35; nodesep=0.3; labelloc=t;\n";
    writeLegend();
    os_ << "  node [style=filled, fontname=\"Helvetica\", fontsize=10, margin=\"0.11,0.05\", "
           "height=0.3];\n"
        << "  edge [fontname=\"Helvetica\", fontsize=8, arrowsize=0.6, color=\"#555555\"];\n";
    writeCluster(root_, "", 2);
    writeEdges();
    os_ << "}\n";
  }

private:
  using Edges = std::vector<const DotGraph::Edge *>;

  Cluster &clusterOf(llvm::StringRef path) {
    Cluster *cluster = &root_;
    // Bounds the nesting, since the path may come from a hostile file; its remainder shares the
    // last cluster.
    for (unsigned depth = 0; depth < 64 && !path.empty(); ++depth) {
      auto [head, rest] = path.split('.');
      cluster = &cluster->child(head);
      path = rest;
    }
    return *cluster;
  }

  // ---- Repeated blocks

  /// Returns a text that is equal for blocks that compute the same. It leaves out where a block's
  /// inputs come from, but keeps which of them are the same value.
  std::string signatureOf(const Cluster &cluster) const {
    std::vector<unsigned> nodes;
    cluster.collectNodes(nodes);
    std::map<unsigned, size_t> inside, outside;
    for (const auto &[position, node] : llvm::enumerate(nodes))
      inside[node] = position;
    std::string text = structureOf(cluster);
    llvm::raw_string_ostream os(text);
    for (unsigned node : nodes) {
      os << "\n" << graph_.nodes_[node].signature;
      for (const DotGraph::Edge *edge : incoming_[node]) {
        if (auto found = inside.find(edge->from); found != inside.end())
          os << " <- " << found->second;
        else
          os << " <- outside " << outside.emplace(edge->from, outside.size()).first->second;
        os << " " << edge->label;
      }
    }
    return text;
  }

  static std::string structureOf(const Cluster &cluster) {
    std::string text = std::to_string(cluster.nodes.size());
    for (const auto &child : cluster.children)
      text += "{" + child->name + " " + structureOf(*child) + "}";
    return text;
  }

  void collapse(Cluster &cluster) {
    std::vector<std::unique_ptr<Cluster>> kept;
    std::string signature;
    for (auto &child : cluster.children) {
      std::string next = signatureOf(*child);
      // Collapses numbered modules only, which lists of modules have: equal siblings such as query
      // and key run side by side.
      if (kept.empty() || next != signature || !isNumber(child->name) ||
          !isNumber(kept.back()->name)) {
        signature = std::move(next);
        kept.push_back(std::move(child));
        continue;
      }
      Cluster &first = *kept.back();
      std::vector<unsigned> drawn, hidden;
      first.collectNodes(drawn);
      child->collectNodes(hidden);
      for (auto [from, to] : llvm::zip_equal(hidden, drawn))
        standsFor_[from] = to;
      ++first.repeats;
      first.lastName = child->name;
    }
    cluster.children = std::move(kept);
    for (auto &child : cluster.children)
      collapse(*child);
  }

  /// Returns the node that is drawn in place of `node`.
  unsigned drawn(unsigned node) const {
    while (standsFor_[node] != node)
      node = standsFor_[node];
    return node;
  }

  // ---- Text

  void writeLegend() {
    std::map<unsigned, DotStyle> used;
    for (const DotGraph::Node &node : graph_.nodes_)
      used.emplace(node.style.rank, node.style);
    os_ << "  label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"4\"><tr>"
        << "<td><b>" << markupText(graph_.title_) << "</b></td>";
    for (const auto &[rank, style] : used)
      os_ << "<td bgcolor=\"" << style.fill << "\"><font point-size=\"9\">" << style.legend
          << "</font></td>";
    os_ << "</tr></table>>;\n";
  }

  void writeCluster(const Cluster &cluster, const std::string &path, unsigned indent) {
    for (unsigned index : cluster.nodes) {
      const DotGraph::Node &node = graph_.nodes_[index];
      os_.indent(indent) << dotString(node.id) << " [label=" << dotString(node.label)
                         << ", shape=" << node.style.shape << ", fillcolor=\"" << node.style.fill
                         << "\"";
      if (!node.tooltip.empty())
        os_ << ", tooltip=" << dotString(node.tooltip);
      os_ << "];\n";
    }
    for (const auto &child : cluster.children) {
      const Cluster *shown = child.get();
      std::string label = childLabel(*shown), childPath = joined(path, shown->name);
      // A module that holds only one other module needs no frame of its own.
      while (shown->nodes.empty() && shown->children.size() == 1 && shown->repeats == 1) {
        shown = shown->children.front().get();
        label += "." + childLabel(*shown);
        childPath = joined(childPath, shown->name);
      }
      os_.indent(indent) << "subgraph " << dotString("cluster_" + childPath) << " {\n";
      os_.indent(indent + 2) << "label=" << dotString(label)
                             << "; fontsize=" << (shown->repeats > 1 ? "16" : "11")
                             << "; style=rounded; color=\""
                             << (shown->repeats > 1 ? "#333333\"; penwidth=2.5"
                                                    : "#999999\"; penwidth=1")
                             << ";\n";
      writeCluster(*shown, childPath, indent + 2);
      os_.indent(indent) << "}\n";
    }
  }

  static std::string joined(const std::string &path, const std::string &name) {
    return path.empty() ? name : path + "." + name;
  }

  /// Returns "0 … 11  × 12" for a cluster that stands for several.
  static std::string childLabel(const Cluster &cluster) {
    if (cluster.repeats == 1)
      return cluster.name;
    return cluster.name + " \u2026 " + cluster.lastName + "   \u00d7 " +
           std::to_string(cluster.repeats);
  }

  void writeEdges() {
    std::set<std::tuple<unsigned, unsigned, std::string>> written;
    for (const DotGraph::Edge &edge : graph_.edges_) {
      const unsigned from = drawn(edge.from), to = drawn(edge.to);
      if (!written.emplace(from, to, edge.label).second)
        continue;
      // An edge from one of several equal blocks to the next points backwards once they are
      // collapsed.
      const bool toNext = from >= to;
      os_ << "  " << dotString(graph_.nodes_[from].id) << " -> " << dotString(graph_.nodes_[to].id);
      llvm::ListSeparator comma(", ");
      std::string attributes;
      if (!edge.label.empty())
        attributes += (llvm::StringRef(comma) + "label=" + dotString(edge.label)).str();
      if (toNext)
        attributes += (llvm::StringRef(comma) + "style=dashed, constraint=false").str();
      if (!attributes.empty())
        os_ << " [" << attributes << "]";
      os_ << ";\n";
    }
  }

  const DotGraph &graph_;
  llvm::raw_ostream &os_;
  Cluster root_;
  std::vector<Edges> incoming_;
  std::vector<unsigned> standsFor_;
};

unsigned DotGraph::addNode(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<unsigned>(nodes_.size() - 1);
}

void DotGraph::addEdge(unsigned from, unsigned to, std::string label) {
  edges_.push_back({from, to, std::move(label)});
}

void DotGraph::write(llvm::raw_ostream &os) const {
  DotLayout(*this, os).write();
}

} // namespace cgc
