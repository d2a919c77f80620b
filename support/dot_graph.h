// DotGraph: a drawing as Graphviz text: nodes in nested clusters by module path, coloured by what
// they do; repeated blocks of a large drawing are drawn once.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace cgc::ir {

/// What an op or a record does, as far as its colour goes.
enum class OpClass : uint8_t {
  Io,
  Weight,
  Module,    ///< A call of a method.
  Product,   ///< Matrix products and convolutions: they cost the time.
  Attention, //
  Reduction, ///< Normalisations, softmax, sums, pooling.
  Pointwise,
  Move, ///< Copies, lookups, concatenation: memory traffic alone.
  View, ///< Free.
  Host, ///< Evaluated while compiling.
  Unknown,
};

/// By the name of an op, a kernel or a function of a library: `aten.linear`, `aten::gelu`,
/// `layer_norm_f16`. Pointwise if the name says nothing else.
OpClass classOfName(llvm::StringRef name);
/// A fill colour, `#rrggbb`, and what the legend calls the class.
llvm::StringRef colourOf(OpClass opClass);
llvm::StringRef describe(OpClass opClass);

/// `text` as XML holds it, in an HTML-like label of Graphviz or in SVG: '?' stands for what XML
/// cannot hold.
std::string markupText(llvm::StringRef text);

class DotGraph {
public:
  /// From so many nodes on, numbered sibling modules that follow each other and are equal are drawn
  /// as one: a plan of ViT-B-32 has 69 nodes, 12 equal blocks in a column of six screens.
  static constexpr size_t kCollapseFrom = 60;

  struct Node {
    std::string id = {}; ///< Unique; never an address.
    std::string label = {};
    std::string tooltip = {}; ///< Shown by viewers of SVG; may be empty.
    std::string path = {};    ///< Of the module, dotted: becomes nested clusters.
    OpClass opClass = OpClass::Pointwise;
    /// Equal for nodes that may stand for each other in repeated blocks.
    std::string signature = {};
  };

  explicit DotGraph(std::string title) : title_(std::move(title)) {}

  /// In execution order. Returns its index.
  unsigned addNode(Node node);
  /// `label` is the tensor that goes along it; may be empty.
  void addEdge(unsigned from, unsigned to, std::string label);

  /// The same text for the same calls.
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
