// Attention patterns: fold query scales.
#include "passes/canonicalize/patterns.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns true if all users of `value`, followed through views, are attention ops that take it as
/// the query. Collects these ops.
bool onlyQueries(const Value *value, std::vector<Node *> &attentions) {
  return llvm::all_of(value->users(), [&](Node *user) {
    if (user->is(OpKind::ScaledDotProductAttention) || user->is(OpKind::CgcAttention)) {
      attentions.push_back(user);
      unsigned reads = 0;
      user->forEachInput([&](const Value *input) { reads += input == value; });
      return user->arg("query").value() == value && reads == 1;
    }
    return isView(*user) && llvm::all_of(user->results(), [&](const Value &result) {
             return onlyQueries(&result, attentions);
           });
  });
}

bool isPowerOfTwo(double number) {
  int exponent;
  return number > 0 && std::frexp(number, &exponent) == 0.5;
}

/// A tensor times a number.
struct Scaled {
  Value *tensor;
  double factor;
};

/// Returns what `node` scales; nullopt if it is no multiplication or true division by a number.
std::optional<Scaled> scaledBy(const Node &node) {
  auto scaled = [](const Arg &tensor, const Arg &number, bool divides) -> std::optional<Scaled> {
    const auto factor = number.asNumber();
    if (!tensor.isValue() || !factor || *factor == 0)
      return std::nullopt;
    return Scaled{tensor.value(), divides ? 1 / *factor : *factor};
  };
  if (auto mul = ir::MulOp::of(node))
    return scaled(mul->self(), mul->other(), /*divides=*/false);
  if (auto div = ir::DivOp::of(node); div && !div->roundingMode())
    return scaled(div->self(), div->other(), /*divides=*/true);
  return std::nullopt;
}

/// Moves the factor of `node`, a mul or div by a number, into the scale of the attention ops whose
/// query it scales.
bool foldScale(Node &node, PatternRewriter &rewriter, bool exactly) {
  const std::optional<Scaled> scaled = scaledBy(node);
  std::vector<Node *> attentions;
  const bool scalesQueries = scaled && onlyQueries(node.result(), attentions);
  if (attentions.empty())
    return false;
  if (!scalesQueries)
    return rewriter.notifyMatchFailure(node, "not only queries of attention are scaled");
  if (exactly && !isPowerOfTwo(scaled->factor))
    return rewriter.notifyMatchFailure(node, "the factor is no power of two, so scaling the scores "
                                             "would round differently");
  const ir::TensorType &type = scaled->tensor->tensor();
  if (type.dtype != node.result()->tensor().dtype)
    return rewriter.notifyMatchFailure(node, "the product has another dtype than the query");
  if (const Node *reader = findStridesRefused(node.result(), type))
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, type); });
  for (Node *attention : attentions) {
    const auto width = static_cast<double>(attention->arg("query").value()->tensor().sizes.back());
    const double scale = attention->arg("scale").asNumber().value_or(1 / std::sqrt(width));
    rewriter.setArg(attention, "scale", scale * scaled->factor);
  }
  replaceAllUsesWith(rewriter, node.result(), scaled->tensor);
  return true;
}

} // namespace

bool foldQueryScale(Node &node, PatternRewriter &rewriter) {
  // A power of two changes only exponents, so applying it later causes no other rounding.
  return foldScale(node, rewriter, /*exactly=*/true);
}

bool foldAnyQueryScale(Node &node, PatternRewriter &rewriter) {
  return foldScale(node, rewriter, /*exactly=*/false);
}

} // namespace cgc::passes
