// Attention patterns: expands LibTorch's fused attention layer and folds query scales.
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
bool onlyQueries(const Value *value, std::vector<ir::AttentionOp> &attentions) {
  return llvm::all_of(value->users(), [&](const Node *user) {
    if (auto attention = ir::AttentionOp::of(*user)) {
      attentions.push_back(*attention);
      unsigned reads = 0;
      user->forEachInput([&](const Value *input) { reads += input == value; });
      return attention->query() == value && reads == 1;
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
  std::vector<ir::AttentionOp> attentions;
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
  for (ir::AttentionOp attention : attentions) {
    const auto width = static_cast<double>(attention.query()->tensor().sizes.back());
    const double scale = attention.scale().value_or(1 / std::sqrt(width));
    rewriter.setArg(&attention.node(), "scale", scale * scaled->factor);
  }
  replaceAllUsesWith(rewriter, node.result(), scaled->tensor);
  return true;
}

} // namespace

bool expandNativeMha(Node &node, PatternRewriter &rewriter) {
  auto mha = ir::NativeMhaOp::of(node);
  if (!mha)
    return false;
  Value *query = mha->query();
  if (query != mha->key() || query != mha->value())
    return rewriter.notifyMatchFailure(node, "query, key and value are not one tensor");
  if (node.result(1)->hasUsers())
    return rewriter.notifyMatchFailure(node, "the attention weights are used");
  // LibTorch's fused layer gives masks other semantics: true excludes a key, and a row may have no
  // key at all.
  if (mha->mask())
    return rewriter.notifyMatchFailure(node, "it has a mask");
  const ir::TensorType &type = query->tensor();
  int64_t heads = mha->numHead(), width = mha->embedDim();
  int64_t batch = type.sizes[0], length = type.sizes[1];

  auto create = [&](OpKind op, std::vector<Arg> args) {
    return rewriter.create(op, std::move(args), node, &node)->result();
  };
  Value *packed = create(OpKind::Linear, {query, mha->qkvWeight(), mha->qkvBias()});
  Value *split =
      create(OpKind::View, {packed, Arg::ints(ir::Dims{batch, length, 3, heads, width / heads})});
  Arg qkv[3];
  for (int64_t part = 0; part < 3; ++part)
    qkv[part] = create(OpKind::Permute,
                       {create(OpKind::Select, {split, 2, part}), Arg::ints(ir::Dims{0, 2, 1, 3})});
  Value *attended =
      create(OpKind::Attention, {qkv[0], qkv[1], qkv[2], Arg(), 0.0, false, Arg(), false});
  Value *rows = create(OpKind::Permute, {attended, Arg::ints(ir::Dims{0, 2, 1, 3})});
  Value *merged = create(OpKind::Reshape, {rows, Arg::ints(ir::Dims{batch, length, width})});
  Value *projected = create(OpKind::Linear, {merged, mha->projWeight(), mha->projBias()});
  replaceAllUsesWith(rewriter, node.result(0), projected);
  return true;
}

bool foldQueryScale(Node &node, PatternRewriter &rewriter) {
  // A power of two changes only exponents, so applying it later causes no other rounding.
  return foldScale(node, rewriter, /*exactly=*/true);
}

bool foldAnyQueryScale(Node &node, PatternRewriter &rewriter) {
  return foldScale(node, rewriter, /*exactly=*/false);
}

} // namespace cgc::passes
