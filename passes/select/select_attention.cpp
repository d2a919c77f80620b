// select-attention: replaces scaled_dot_product_attention, and attention of matmul and softmax,
// with cgc.attention.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include <algorithm>
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

/// Replaces the uses of `node`, whose result is [B, H, L, D], by those of cgc.attention with
/// `args`. Refuses if cgc.attention does, or a reader of the result.
bool replaceByAttention(Node &node, std::vector<Arg> args, PatternRewriter &rewriter) {
  const ir::TensorType &type = node.result()->tensor();
  const ir::TensorType selected = tokenMajor(type);
  const Node *reader = findStridesRefused(node.result(), selected);
  const auto order = reader ? denseOrder(type) : std::nullopt;
  if (reader && !order)
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, selected); });
  // Calls with broadcast batches or shared heads stay as they are.
  if (auto inferred = ir::inferResults(OpKind::CgcAttention, args, type.device); !inferred)
    return rewriter.notifyMatchFailure(
        node, [&] { return "cgc.attention refuses it: " + inferred.status().message(); });
  auto create = [&](OpKind op, std::vector<Arg> operands) {
    return rewriter.create(op, std::move(operands), node, &node)->result();
  };
  auto permute = [&](Value *value, const ir::Dims &dims) {
    return create(OpKind::Permute, {value, Arg::ints(dims)});
  };
  const ir::Dims &sizes = type.sizes;
  Value *heads =
      create(OpKind::View, {create(OpKind::CgcAttention, std::move(args)),
                            Arg::ints(ir::Dims{sizes[0], sizes[2], sizes[1], sizes[3]})});
  heads = permute(heads, {0, 2, 1, 3});
  if (order)
    heads = permute(create(OpKind::Contiguous, {permute(heads, *order)}), inverse(*order));
  replaceAllUsesWith(rewriter, node.result(), heads);
  return true;
}

bool selectAttention(Node &node, PatternRewriter &rewriter) {
  auto attention = ir::ScaledDotProductAttentionOp::of(node);
  if (!attention)
    return false;
  if (node.result()->tensor().rank() != 4)
    return rewriter.notifyMatchFailure(node, "the result is not [B, H, L, D]");
  const ir::TensorType &query = attention->query()->tensor();
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
  return replaceByAttention(node,
                            {attention->query(), attention->key(), attention->value(),
                             mask ? Arg(mask) : Arg(), causal, scale},
                            rewriter);
}

/// Returns the largest magnitude of the elements of a sum, a view or a choice of constants;
/// infinity or NaN if one has such an element, nullopt if elements are not known.
std::optional<double> largestMagnitude(Value *value) {
  if (const auto elements = elementsOf(value)) {
    double largest = 0;
    for (const double element : *elements) {
      if (std::isnan(element))
        return element;
      largest = std::max(largest, std::abs(element));
    }
    return largest;
  }
  Node &node = *value->node();
  if (const auto sum = operandsOfSum(node); !sum.empty()) {
    const auto first = largestMagnitude(sum[0].first), second = largestMagnitude(sum[0].second);
    return first && second ? std::optional(*first + *second) : std::nullopt;
  }
  const bool moves =
      isView(node) || node.is(OpKind::Index) || node.is(OpKind::Contiguous) || node.is(OpKind::To);
  return moves ? largestMagnitude(node.arg("self").value()) : std::nullopt;
}

/// Scores and the constants that are added to them, the last first, each with the sizes that it
/// broadcasts to.
struct Scores {
  ir::MatmulOp product;
  struct Addend {
    Value *constant;
    ir::Dims sizes;
  };
  std::vector<Addend> addends;
};

/// Takes `value` for a product to which constants are added, with views between the sums. Returns
/// nullopt if it is none, or if another op reads an intermediate value.
std::optional<Scores> scoresOf(Value *value) {
  std::vector<Scores::Addend> addends;
  while (value->hasOneUser()) {
    Node &node = *value->node();
    if (auto product = ir::MatmulOp::of(node))
      return Scores{*product, std::move(addends)};
    Value *next = nullptr;
    if (auto view = ir::ViewOp::of(node))
      next = view->self();
    for (const Operands &sum : operandsOfSum(node))
      if (!next && sum.first->tensor().sizes == value->tensor().sizes &&
          dependsOnParametersOnly(sum.second)) {
        addends.push_back({sum.second, value->tensor().sizes});
        next = sum.first;
      }
    if (!next)
      return std::nullopt;
    value = next;
  }
  return std::nullopt;
}

/// Returns the sizes in which `addend` broadcasts to scores [N, H, L, S], where N is 1 or divides
/// the batch of `scores`, [B, H, L, S], and its batch b % N is that of batch b. Nullopt if there
/// are none.
std::optional<ir::Dims> maskSizes(const Scores::Addend &addend, const ir::Dims &scores) {
  const size_t rank = addend.sizes.size();
  if ((rank != 4 && rank != 5) ||
      !std::equal(scores.begin() + 1, scores.end(), addend.sizes.end() - 3, addend.sizes.end()))
    return std::nullopt;
  ir::Dims sizes = addend.constant->tensor().sizes;
  sizes.insert(sizes.begin(), rank - sizes.size(), 1);
  if (sizes[0] != 1)
    return std::nullopt;
  if (rank == 5)
    sizes.erase(sizes.begin());
  return sizes;
}

/// Rewrites matmul(softmax(q k^T + constants), v). The scores are not rounded then, and the
/// constants are added up before they are added to them.
bool selectMatmulAttention(Node &node, PatternRewriter &rewriter) {
  auto matmul = ir::MatmulOp::of(node);
  auto softmax = matmul ? ir::SoftmaxOp::of(matmul->self()) : std::nullopt;
  if (!softmax)
    return false;
  const ir::TensorType &type = softmax->self()->tensor();
  const ir::Dims &sizes = type.sizes;
  if (sizes.size() != 4 || (softmax->dim() != 3 && softmax->dim() != -1) ||
      softmax->result()->tensor().dtype != type.dtype || type.numElements() == 0)
    return rewriter.notifyMatchFailure(
        node, "the weights are not a softmax over the last dimension of [B, H, L, S]");
  const auto scores = softmax->result()->hasOneUser() ? scoresOf(softmax->self()) : std::nullopt;
  if (!scores)
    return rewriter.notifyMatchFailure(
        node, "the scores are not a product plus constants that nothing else reads");
  Value *query = scores->product.self(), *keys = scores->product.other(), *value = matmul->other();
  const ir::Dims &q = query->tensor().sizes;
  if (q.size() != 4 || keys->tensor().sizes != ir::Dims{q[0], q[1], q[3], sizes[3]} ||
      value->tensor().sizes != ir::Dims{q[0], q[1], sizes[3], q[3]} ||
      sizes != ir::Dims{q[0], q[1], q[2], sizes[3]})
    return rewriter.notifyMatchFailure(node,
                                       "queries, keys and values differ in batch, heads or width");
  std::vector<ir::Dims> addendSizes;
  double largest = 0;
  for (const Scores::Addend &addend : scores->addends) {
    const auto own = maskSizes(addend, sizes);
    if (!own || addend.constant->tensor().dtype != query->tensor().dtype)
      return rewriter.notifyMatchFailure(
          node, "a constant that is added to the scores is not that of heads or of windows");
    addendSizes.push_back(*own);
    const auto magnitude = largestMagnitude(addend.constant);
    largest += magnitude.value_or(std::numeric_limits<double>::infinity());
  }
  // Attention gives 0 for a query whose scores are all -infinity, and softmax NaN.
  constexpr double kMostOfF16 = 65504, kMostOfOthers = 1e38;
  if (!(largest <= (type.dtype == DType::F16 ? kMostOfF16 : kMostOfOthers)))
    return rewriter.notifyMatchFailure(
        node, "a constant that is added to the scores is not known to be finite");
  auto create = [&](OpKind op, std::vector<Arg> operands) {
    return rewriter.create(op, std::move(operands), node, &node)->result();
  };
  Value *mask = nullptr;
  for (size_t i = 0; i < addendSizes.size(); ++i) {
    Value *addend = create(OpKind::View, {scores->addends[i].constant, Arg::ints(addendSizes[i])});
    mask = mask ? create(OpKind::Add, {addend, mask, 1}) : addend;
  }
  if (mask && sizes[3] % 2 != 0 && dtypeSize(type.dtype) == 2) {
    // Kernels read pairs of elements where each row begins at one.
    mask = create(OpKind::ConstantPadNd, {mask, Arg::ints(ir::Dims{0, 1}), 0});
    mask = create(OpKind::Slice, {mask, 3, 0, sizes[3], 1});
  } else if (mask) { // `fold` folds dense tensors only.
    mask = create(OpKind::Contiguous, {mask});
  }
  Value *key = create(OpKind::Permute, {keys, Arg::ints(ir::Dims{0, 1, 3, 2})});
  return replaceByAttention(node, {query, key, value, mask ? Arg(mask) : Arg(), false, 1.0},
                            rewriter);
}

// The results have another dimension order than LibTorch's, so the linear that reads them must
// process its rows in that order.
constexpr Pattern kSelectAttentionPatterns[] = {
    CGC_PATTERN(foldAnyQueryScale),
    CGC_PATTERN(selectAttention),
    CGC_PATTERN(selectMatmulAttention),
    CGC_PATTERN(sinkPermute),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
    CGC_PATTERN(dropCopy),
};

} // namespace

/// Replaces scaled_dot_product_attention with cgc.attention, which writes the heads of a token side
/// by side, drops the copies that produced this order, and adds one for users that need another. A
/// factor of the query moves into the scale, and a constant causal mask becomes a flag. Matmul,
/// softmax and matmul become cgc.attention, too; constants that are added to the scores, as for
/// positions and for the windows of an image, become its mask, which `fold` evaluates.
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
