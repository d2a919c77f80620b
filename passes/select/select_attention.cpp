// select-attention: replaces scaled_dot_product_attention with cgc.attention.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include <cmath>
#include <limits>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns true if `mask` [..., L, S] lets query l see exactly the keys up to l.
bool isCausal(Value *mask) {
  auto elements = elementsOf(mask);
  const ir::TensorType &type = mask->tensor();
  if (!elements || type.rank() < 2 || type.numElements() == 0)
    return false;
  bool isBool = type.dtype == DType::Bool;
  double seen = isBool ? 1 : 0, hidden = isBool ? 0 : -std::numeric_limits<double>::infinity();
  int64_t queries = type.sizes[type.rank() - 2], keys = type.sizes.back();
  for (size_t i = 0; i < elements->size(); ++i) {
    auto position = static_cast<int64_t>(i);
    bool sees = position % keys <= position / keys % queries;
    if ((*elements)[i] != (sees ? seen : hidden))
      return false;
  }
  return true;
}

/// Returns the type of an attention result [B, H, L, D] whose memory is [B, L, H, D].
ir::TensorType tokenMajor(ir::TensorType type) {
  int64_t heads = type.sizes[1], length = type.sizes[2], width = type.sizes[3];
  type.strides = {length * heads * width, width, heads * width, 1};
  return type;
}

bool selectAttention(Node &node, PatternRewriter &rewriter) {
  auto attention = ir::ScaledDotProductAttentionOp::of(node);
  if (!attention)
    return false;
  if (node.result()->tensor().rank() != 4)
    return rewriter.notifyMatchFailure(node, "the result is not [B, H, L, D]");
  const ir::TensorType &query = attention->query()->tensor(), &type = node.result()->tensor();
  const ir::TensorType selected = tokenMajor(type);
  const Node *reader = findStridesRefused(node.result(), selected);
  const auto order = reader ? denseOrder(type) : std::nullopt;
  if (reader && !order)
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, selected); });
  Value *mask = attention->attnMask();
  bool causal = attention->isCausal();
  // A mask of one row or one column does not cover each pair of query and key.
  if (mask &&
      llvm::ArrayRef(mask->tensor().sizes).take_back(2) ==
          llvm::ArrayRef({query.sizes[2], attention->key()->tensor().sizes[2]}) &&
      isCausal(mask)) {
    mask = nullptr;
    causal = true;
  }
  const double scale =
      attention->scale().value_or(1 / std::sqrt(static_cast<double>(query.sizes.back())));
  std::vector<Arg> args = {attention->query(),       attention->key(), attention->value(),
                           mask ? Arg(mask) : Arg(), causal,           scale};
  // Calls with broadcast batches or shared heads stay as they are.
  if (auto inferred = ir::inferResults(OpKind::CgcAttention, args, query.device); !inferred)
    return rewriter.notifyMatchFailure(
        node, [&] { return "cgc.attention refuses it: " + inferred.status().message(); });
  auto create = [&](OpKind op, std::vector<Arg> operands) {
    return rewriter.create(op, std::move(operands), node, &node)->result();
  };
  auto permute = [&](Value *value, const ir::Dims &dims) {
    return create(OpKind::Permute, {value, Arg::ints(dims)});
  };
  const ir::Dims &sizes = query.sizes;
  Value *heads =
      create(OpKind::View, {create(OpKind::CgcAttention, std::move(args)),
                            Arg::ints(ir::Dims{sizes[0], sizes[2], sizes[1], sizes[3]})});
  heads = permute(heads, {0, 2, 1, 3});
  if (order)
    heads = permute(create(OpKind::Contiguous, {permute(heads, *order)}), inverse(*order));
  replaceAllUsesWith(rewriter, node.result(), heads);
  return true;
}

// The results have another dimension order than LibTorch's, so the linear that reads them must
// process its rows in that order.
constexpr Pattern kSelectAttentionPatterns[] = {
    CGC_PATTERN(foldAnyQueryScale), CGC_PATTERN(selectAttention), CGC_PATTERN(sinkPermute),
    CGC_PATTERN(normalizeViews),    CGC_PATTERN(dropIdentity),    CGC_PATTERN(dropCopy),
};

} // namespace

/// Replaces scaled_dot_product_attention with cgc.attention, which writes the heads of a token side
/// by side, drops the copies that produced this order, and adds one for users that need another. A
/// factor of the query moves into the scale, and a constant causal mask becomes a flag.
struct SelectAttentionPass {
  static constexpr const char *name = "select-attention";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectAttentionPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectAttentionPatterns, context);
}

CGC_DEFINE_PASS(SelectAttentionPass)

} // namespace cgc::passes
