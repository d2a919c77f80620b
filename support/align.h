// align: longest common subsequences of sequences, and line diffs of texts.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>
#include <vector>

namespace cgc {

/// Returns the index pairs of a longest common subsequence of `a` and `b`, in increasing order.
/// Elements that occur very often count only next to a pair of other elements.
std::vector<std::pair<size_t, size_t>> alignEqual(llvm::ArrayRef<llvm::StringRef> a,
                                                  llvm::ArrayRef<llvm::StringRef> b);

/// Returns a diff of the differing lines, each prefixed with `-` or `+`, with one line of context
/// around each hunk; `...` marks omitted lines. Empty if the texts are equal.
std::string diffLines(llvm::StringRef before, llvm::StringRef after);

} // namespace cgc
