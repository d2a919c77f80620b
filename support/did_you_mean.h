// didYouMean: the near miss, for messages about a name that does not exist.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace cgc::ir {

/// "; did you mean '%x'?" with the nearest of `candidates` and `sigil` in front of it, or nothing
/// if none is near.
std::string didYouMean(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> candidates,
                       llvm::StringRef sigil = "");

} // namespace cgc::ir
