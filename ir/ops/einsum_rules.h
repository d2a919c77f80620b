// einsum_rules: parses the equation of aten.einsum.
#pragma once

#include "runtime/base/status.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace cgc::ir::rules {

/// The labels of the dimensions of each operand and of the result.
struct Einsum {
  std::vector<std::string> terms;
  std::string result;
};

/// Parses "ij,jk->ik". Without an arrow the result has the labels that occur once, in alphabetical
/// order. Refuses an ellipsis, and a label that occurs twice in one term.
Result<Einsum> parseEinsum(llvm::StringRef equation);

} // namespace cgc::ir::rules
