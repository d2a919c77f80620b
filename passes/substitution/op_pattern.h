// OpPattern: the parsed and checked text of an OpSubstitution; finds matches and builds
// replacements.
#pragma once

#include "passes/pattern.h"
#include "passes/substitution/substitutions.h"

#include <memory>
#include <optional>

namespace cgc::passes {

class OpPattern final {
public:
  /// Parses the texts of `substitution`, which is borrowed. Failed, with the error in the text, if
  /// it is invalid.
  static Result<OpPattern> create(const OpSubstitution &substitution);

  /// Returns the match whose output `root` computes, if there is one. Does not change the graph.
  /// Otherwise reports to `rewriter` what differs, if `root` is of the op that the pattern ends in.
  std::optional<OpMatch> match(ir::Node &root, const PatternRewriter &rewriter) const;

  /// Returns the value that replaces the root's result; null if the substitution's function
  /// declines.
  Result<ir::Value *> build(const OpMatch &match, ir::GraphRewriter &rewriter) const;

private:
  explicit OpPattern(const OpSubstitution &substitution) : substitution_(&substitution) {}

  const OpSubstitution *substitution_;
  std::unique_ptr<ir::Module> pattern_, replacement_; ///< Each has one graph.
};

} // namespace cgc::passes
