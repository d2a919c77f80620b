// einsum_rules: parses the equation of aten.einsum.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace cgc::ir::rules {

/// The labels of the dimensions of each operand and of the result. The dimensions of an ellipsis
/// have digits, '9' for the last.
struct Einsum {
  std::vector<std::string> terms;
  std::string result;
};

/// Parses "ij,jk->ik" for operands of these ranks; there must be one for each term. Without an
/// arrow the result has the dimensions of the ellipsis, then the labels that occur once, in
/// alphabetical order. Refuses a label that occurs twice in one term, and a term that does not fit
/// its rank.
Result<Einsum> parseEinsum(llvm::StringRef equation, llvm::ArrayRef<int64_t> ranks);

} // namespace cgc::ir::rules
