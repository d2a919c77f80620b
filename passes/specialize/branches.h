// BranchStack: which nodes run, for a walk over a graph with prim.if, prim.else and prim.end_if.
#pragma once

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace cgc::passes {

/// The branches around the node that a walk has come to. Tell it of each marker in order.
class BranchStack {
public:
  /// prim.if. `taken`: whether its condition holds; nothing if that is not known. `mayBeSkipped`:
  /// whether either side may yet turn out not to run. Of no interest while isSkipped().
  void enter(std::optional<bool> taken, bool mayBeSkipped = false) {
    branches_.push_back({isSkipped(), taken, false, mayBeSkipped || this->mayBeSkipped()});
  }
  /// prim.else.
  void enterElse() { branches_.back().inElse = true; }
  /// prim.end_if. Returns which side was taken; nothing if that is not known.
  std::optional<bool> leave() { return branches_.pop_back_val().taken; }

  /// Whether the walk is in a side that is not taken.
  bool isSkipped() const {
    if (branches_.empty())
      return false;
    const Branch &innermost = branches_.back();
    return innermost.skipped || (innermost.taken && *innermost.taken == innermost.inElse);
  }
  /// Whether the innermost branch is one of which the side is not known.
  bool isUndecided() const { return !branches_.back().taken; }
  /// Whether all branches around are decided, so that the node certainly runs.
  bool allDecided() const {
    return llvm::all_of(branches_, [](const Branch &branch) { return branch.taken.has_value(); });
  }

  bool mayBeSkipped() const { return !branches_.empty() && branches_.back().mayBeSkipped; }

private:
  struct Branch {
    bool skipped; ///< The whole of it.
    std::optional<bool> taken;
    bool inElse;
    bool mayBeSkipped; ///< Either side, also for the sake of a branch around.
  };
  llvm::SmallVector<Branch> branches_;
};

} // namespace cgc::passes
