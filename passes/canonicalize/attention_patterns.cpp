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
bool onlyQueries(const Value *value, const ir::UseMap &uses, std::vector<Node *> &attentions) {
  return llvm::all_of(uses.users(value), [&](Node *user) {
    if (user->is(OpKind::Attention)) {
      bool isQuery = user->arg(0) == Arg(const_cast<Value *>(value));
      unsigned reads = 0;
      user->forEachInput([&](Value *input) { reads += input == value; });
      if (!llvm::is_contained(attentions, user))
        attentions.push_back(user);
      return isQuery && reads == 1;
    }
    return isView(*user) && llvm::all_of(user->results(), [&](const Value &result) {
             return onlyQueries(&result, uses, attentions);
           });
  });
}

bool isPowerOfTwo(double number) {
  int exponent;
  return number > 0 && std::frexp(number, &exponent) == 0.5;
}

/// Moves the factor of `node`, a mul or div by a number, into the scale of the attention ops whose
/// query it scales.
bool foldScale(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter, bool exactly) {
  bool divides = node.is(OpKind::Div) && node.arg("rounding_mode").isNone();
  if ((!node.is(OpKind::Mul) && !divides) || !node.arg(0).isValue())
    return false;
  auto number = node.arg(1).asNumber();
  Value *query = node.arg(0).value();
  if (!number || *number == 0 || (exactly && !isPowerOfTwo(*number)) ||
      query->tensor().dtype != node.result()->tensor().dtype ||
      !acceptsStrides(node.result(), query->tensor()))
    return false;
  std::vector<Node *> attentions;
  if (!onlyQueries(node.result(), uses, attentions) || attentions.empty())
    return false;
  double factor = divides ? 1 / *number : *number;
  for (Node *attention : attentions) {
    double width = static_cast<double>(attention->arg(0).value()->tensor().sizes.back());
    double scale = attention->arg("scale").asNumber().value_or(1 / std::sqrt(width));
    rewriter.setArg(attention, *ir::opSchema(OpKind::Attention).find("scale"), scale * factor);
  }
  replaceAllUsesWith(rewriter, node.result(), query);
  return true;
}

} // namespace

bool expandNativeMha(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::NativeMha))
    return false;
  const Arg &query = node.arg("query");
  bool selfAttention = query == node.arg("key") && query == node.arg("value");
  bool weightsUnused = uses.users(node.result(1)).empty();
  // LibTorch's fused layer gives masks other semantics (true excludes a key, and a row may have no
  // key at all), so a call with a mask stays.
  if (!selfAttention || !weightsUnused || !node.arg("mask").isNone())
    return false;
  const ir::TensorType &type = query.value()->tensor();
  int64_t heads = node.arg("num_head").as<int64_t>(), width = node.arg("embed_dim").as<int64_t>();
  int64_t batch = type.sizes[0], length = type.sizes[1];

  auto create = [&](OpKind op, std::vector<Arg> args) {
    return rewriter.create(op, std::move(args), node, &node)->result();
  };
  Value *packed = create(OpKind::Linear, {query, node.arg("qkv_weight"), node.arg("qkv_bias")});
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
  Value *projected =
      create(OpKind::Linear, {merged, node.arg("proj_weight"), node.arg("proj_bias")});
  replaceAllUsesWith(rewriter, node.result(0), projected);
  return true;
}

bool foldQueryScale(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  // A power of two changes only exponents, so applying it later causes no other rounding.
  return foldScale(node, uses, rewriter, /*exactly=*/true);
}

bool foldAnyQueryScale(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  return foldScale(node, uses, rewriter, /*exactly=*/false);
}

} // namespace cgc::passes
