// einsum_rules: parses the equation of aten.einsum.
#include "ir/ops/einsum_rules.h"

#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

namespace cgc::ir::rules {
namespace {

constexpr size_t kMostEllipsis = 10; ///< One digit for each of its dimensions.

/// Returns the digits of the `count` last dimensions of an ellipsis.
std::string ellipsis(size_t count) {
  return std::string("0123456789").substr(kMostEllipsis - count);
}

/// Returns the letters of `text`, and as `dots` where among them its ellipsis stands, if any.
Result<std::string> lettersOf(llvm::StringRef text, std::optional<size_t> &dots) {
  std::string labels;
  for (llvm::StringRef rest = text.trim(); !rest.empty();) {
    if (!dots && rest.consume_front("...")) {
      dots = labels.size();
      continue;
    }
    const char c = rest.front();
    rest = rest.drop_front();
    if (c == ' ')
      continue;
    if (!llvm::isAlpha(c))
      return refuse("cgc takes letters and one ellipsis in a term of 'equation', got '" + text +
                    "'");
    if (labels.find(c) != std::string::npos)
      return refuse("label '" + llvm::Twine(c) + "' occurs twice in '" + text +
                    "'; take the diagonal before");
    labels += c;
  }
  return labels;
}

/// Returns the labels of an operand with `rank` dimensions. Sets `most` to the number of dimensions
/// of its ellipsis if that is larger.
Result<std::string> labelsOf(llvm::StringRef text, int64_t rank, size_t &most) {
  std::optional<size_t> dots;
  CGC_ASSIGN_OR_RETURN(std::string labels, lettersOf(text, dots));
  const size_t letters = labels.size(), dimensions = static_cast<size_t>(rank);
  if (dots ? dimensions < letters || dimensions - letters > kMostEllipsis : dimensions != letters)
    return refuse("expected 'tensors' to be of rank " + llvm::Twine(letters) +
                  (dots ? " or more" : "") + " for '" + text + "', got rank " + llvm::Twine(rank));
  if (dots) {
    labels.insert(*dots, ellipsis(dimensions - letters));
    most = std::max(most, dimensions - letters);
  }
  return labels;
}

} // namespace

Result<Einsum> parseEinsum(llvm::StringRef equation, llvm::ArrayRef<int64_t> ranks) {
  Einsum einsum;
  auto [left, right] = equation.split("->");
  llvm::SmallVector<llvm::StringRef, 2> terms;
  left.split(terms, ',');
  if (terms.size() != ranks.size())
    return refuse("expected 'tensors' to be " + llvm::Twine(terms.size()) +
                  ", as in 'equation', got " + llvm::Twine(ranks.size()));
  size_t most = 0;
  std::map<char, unsigned> count; // By alphabet, upper case first, as in LibTorch.
  for (auto [term, rank] : llvm::zip_equal(terms, ranks)) {
    CGC_ASSIGN_OR_RETURN(std::string labels, labelsOf(term, rank, most));
    for (char label : labels)
      ++count[label];
    einsum.terms.push_back(std::move(labels));
  }
  if (equation.contains("->")) {
    std::optional<size_t> dots;
    CGC_ASSIGN_OR_RETURN(einsum.result, lettersOf(right, dots));
    if (dots)
      einsum.result.insert(*dots, ellipsis(most));
    return einsum;
  }
  einsum.result = ellipsis(most);
  for (auto [label, times] : count)
    if (times == 1 && llvm::isAlpha(label))
      einsum.result += label;
  return einsum;
}

} // namespace cgc::ir::rules
