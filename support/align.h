// align: which elements of two sequences correspond, for what compares texts and graphs.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>
#include <vector>

namespace cgc::ir {

/// The positions of a longest common subsequence, in order. Elements that occur very often count
/// only where they follow or precede a pair of others.
std::vector<std::pair<size_t, size_t>> alignEqual(llvm::ArrayRef<llvm::StringRef> a,
                                                  llvm::ArrayRef<llvm::StringRef> b);

/// The lines that differ, `-` or `+` in front, with a line around each place; `...` stands for what
/// is left out. Empty if the texts are equal.
std::string diffLines(llvm::StringRef before, llvm::StringRef after);

} // namespace cgc::ir
