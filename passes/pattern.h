// Pattern: a rewrite of one op, and the rewriter through which it changes the graph and says why it
// does not match.
#pragma once

#include "ir/rewriter.h"
#include "passes/explain.h"

#include "llvm/ADT/Twine.h"

namespace cgc::passes {

/// The GraphRewriter of a pattern.
class PatternRewriter final : public ir::GraphRewriter {
public:
  /// Borrows `listener`, which is null unless --explain asks for the pattern's pass.
  PatternRewriter(ir::Graph &graph, llvm::StringRef pattern, const MatchListener *listener)
      : GraphRewriter(graph), pattern_(pattern), listener_(listener) {}

  /// Reports the condition that `candidate`, an op that the pattern is for, fails. Returns false,
  /// for the pattern to return. Does nothing without a listener. Use the second form where the
  /// reason takes work to write.
  bool notifyMatchFailure(const ir::Node &candidate, const llvm::Twine &reason) const;
  bool notifyMatchFailure(const ir::Node &candidate,
                          llvm::function_ref<std::string()> reason) const;

private:
  llvm::StringRef pattern_;
  const MatchListener *listener_;
};

/// A pattern looks at one node that is in use, and returns true if it rewrote the node; otherwise
/// it changes nothing. It may create nodes and redirect uses but must not erase: runPatterns erases
/// dead nodes afterwards. It returns false for ops that it is not for, and the result of
/// notifyMatchFailure for a candidate that it declines.
struct Pattern {
  llvm::StringLiteral name; ///< The name of the function.
  bool (*rewrite)(ir::Node &node, PatternRewriter &rewriter);
};

/// The Pattern of a function.
#define CGC_PATTERN(function)                                                                      \
  ::cgc::passes::Pattern {                                                                         \
    #function, function                                                                            \
  }

} // namespace cgc::passes
