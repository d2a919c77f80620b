// DotGraph: a drawing as Graphviz text, with nodes in nested clusters by module path and colored by
// their function; repeated blocks of a large drawing are drawn once.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace cgc::ir {

/// The function of an op or a record, which selects its color.
enum class OpClass : uint8_t {
  Io,
  Weight,
  Module,    ///< A call of a method.
  Gemm,      ///< Matrix products and convolutions, which dominate run time.
  Attention, //
  Reduction, ///< Normalizations, softmax, sums, pooling.
  Pointwise,
  Move, ///< Copies, lookups, concatenation: memory traffic only.
  View, ///< No work at run time.
  Host, ///< Evaluated at compile time.
  Unknown,
};

/// Classifies by the name of a kernel or a library function: `layer_norm_f16`, `aten::_softmax`.
/// Unrecognized names are Pointwise.
OpClass classOfName(llvm::StringRef name);
/// Returns the fill color of the class, `#rrggbb`.
llvm::StringRef colorOf(OpClass opClass);
/// Returns the name of the class in the legend.
llvm::StringRef describe(OpClass opClass);

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
    OpClass opClass = OpClass::Pointwise;
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

} // namespace cgc::ir
