// DotGraph: a drawing as Graphviz text, with nodes in nested clusters by module path and a legend
// of their styles; repeated blocks of a large drawing are drawn once.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace cgc {

/// The look of a kind of node.
struct DotStyle {
  unsigned rank = 0;                ///< The kinds of a drawing are in this order in its legend.
  llvm::StringRef legend = "node";  ///< The name of the kind there.
  llvm::StringRef fill = "#ffffff"; ///< `#rrggbb`
  llvm::StringRef shape = "box";    ///< A shape of Graphviz.
};

/// Returns `text` escaped for XML, for HTML-like Graphviz labels and for SVG; '?' replaces
/// characters that XML does not allow.
std::string markupText(llvm::StringRef text);

class DotGraph {
public:
  /// Collapses equal consecutive numbered sibling modules once a drawing has this many nodes: a
  /// plan of ViT-B-32 has 69 nodes, 12 equal blocks in a column six screens high.
  static constexpr size_t kCollapseFrom = 60;

  struct Node {
    std::string id = {}; ///< Unique; never an address.
    std::string label = {};
    std::string tooltip = {}; ///< Shown by SVG viewers; may be empty.
    std::string path = {};    ///< Dotted module path, drawn as nested clusters.
    DotStyle style = {};
    /// Nodes with equal signatures may stand for each other in repeated blocks.
    std::string signature = {};
  };

  explicit DotGraph(std::string title) : title_(std::move(title)) {}

  /// Adds a node; call in execution order. Returns the node's index.
  unsigned addNode(Node node);
  /// `label` names the tensor along the edge; may be empty.
  void addEdge(unsigned from, unsigned to, std::string label);

  /// Writes the drawing. Deterministic: equal calls give equal text.
  void write(llvm::raw_ostream &os) const;

private:
  friend class DotLayout;
  struct Edge {
    unsigned from, to;
    std::string label;
  };

  std::string title_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

} // namespace cgc
