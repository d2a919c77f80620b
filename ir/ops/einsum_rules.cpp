// einsum_rules: parses the equation of aten.einsum.
#include "ir/ops/einsum_rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

namespace cgc::ir::rules {
namespace {

Result<std::string> labelsOf(llvm::StringRef text) {
  std::string labels;
  for (char c : text) {
    if (c == ' ')
      continue;
    if (!llvm::isAlpha(c))
      return Status(Code::Unsupported, "cgc takes letters only in 'equation', got '" + text.str() +
                                           "'; write out an ellipsis");
    if (labels.find(c) != std::string::npos)
      return Status(Code::Unsupported, "label '" + std::string(1, c) + "' occurs twice in '" +
                                           text.str() + "'; take the diagonal before");
    labels += c;
  }
  return labels;
}

} // namespace

Result<Einsum> parseEinsum(llvm::StringRef equation) {
  Einsum einsum;
  auto [left, right] = equation.split("->");
  llvm::SmallVector<llvm::StringRef, 2> terms;
  left.split(terms, ',');
  std::map<char, unsigned> count; // By alphabet, upper case first, as in LibTorch.
  for (llvm::StringRef term : terms) {
    CGC_ASSIGN_OR_RETURN(std::string labels, labelsOf(term));
    for (char label : labels)
      ++count[label];
    einsum.terms.push_back(std::move(labels));
  }
  if (equation.contains("->")) {
    CGC_ASSIGN_OR_RETURN(einsum.result, labelsOf(right));
    return einsum;
  }
  for (auto [label, times] : count)
    if (times == 1)
      einsum.result += label;
  return einsum;
}

} // namespace cgc::ir::rules
