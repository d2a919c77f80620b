// didYouMean: the suggestion for messages about an unknown name.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace cgc {

/// Returns "; did you mean '%x'?" with the candidate nearest to `text` by edit distance, prefixed
/// with `sigil`; empty if no candidate is near.
std::string didYouMean(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> candidates,
                       llvm::StringRef sigil = "");

} // namespace cgc
