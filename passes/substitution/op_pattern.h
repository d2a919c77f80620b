// OpPattern: the text of an OpSubstitution, read and checked; matching it, and building what
// replaces a match.
#pragma once

#include "passes/substitution/substitutions.h"

#include <memory>
#include <optional>

namespace cgc::passes {

class OpPattern final {
public:
  /// Failed, with what is wrong with a text, if `substitution` cannot be used. Borrows it.
  static Result<OpPattern> create(const OpSubstitution &substitution);

  /// The match whose output `root` computes, if there is one. Changes nothing.
  std::optional<OpMatch> match(ir::Node &root) const;

  /// The value that replaces the root's result; null if the substitution's function declines.
  Result<ir::Value *> build(const OpMatch &match, ir::GraphRewriter &rewriter) const;

private:
  explicit OpPattern(const OpSubstitution &substitution) : substitution_(&substitution) {}

  const OpSubstitution *substitution_;
  std::unique_ptr<ir::Module> pattern_, replacement_; ///< Each with one graph.
};

} // namespace cgc::passes
