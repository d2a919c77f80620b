// BranchStack: tracks which nodes run, for a walk over a graph with prim.if, prim.else and
// prim.end_if.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace cgc::passes {

/// The branches that enclose the current node of a walk. Call it for each marker, in order.
class BranchStack {
public:
  /// Call at prim.if. `taken`: whether its condition holds; nullopt if that is unknown.
  /// `mayBeSkipped`: whether either side may turn out not to run. Both are ignored while
  /// isSkipped().
  void enter(std::optional<bool> taken, bool mayBeSkipped = false) {
    branches_.push_back({isSkipped(), taken, false, mayBeSkipped || this->mayBeSkipped()});
  }
  /// Call at prim.else.
  void enterElse() { branches_.back().inElse = true; }
  /// Call at prim.end_if. Returns which side was taken; nullopt if that is unknown.
  std::optional<bool> leave() { return branches_.pop_back_val().taken; }

  /// Returns true in a side that is not taken.
  bool isSkipped() const {
    if (branches_.empty())
      return false;
    const Branch &innermost = branches_.back();
    return innermost.skipped || (innermost.taken && *innermost.taken == innermost.inElse);
  }
  /// Returns true if the taken side of the innermost branch is unknown.
  bool isUndecided() const { return !branches_.back().taken; }
  /// Returns true if the taken sides of all enclosing branches are known, so that the node
  /// certainly runs.
  bool allDecided() const {
    return llvm::all_of(branches_, [](const Branch &branch) { return branch.taken.has_value(); });
  }

  bool mayBeSkipped() const { return !branches_.empty() && branches_.back().mayBeSkipped; }

private:
  struct Branch {
    bool skipped; ///< The whole branch is skipped.
    std::optional<bool> taken;
    bool inElse;
    bool mayBeSkipped; ///< Applies to both sides; inherited from an enclosing branch.
  };
  llvm::SmallVector<Branch> branches_;
};

} // namespace cgc::passes
