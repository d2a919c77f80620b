// select-tokens: replaces a class token concatenated before patches, and positions, with
// cgc.tokens.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"
#include "passes/select/positions.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns the vector [E] that `value`, [B, 1, E], repeats; null if there is none.
Value *repeatedVector(Value *value) {
  const ir::TensorType &type = value->tensor();
  Value *vector = layoutOf(value).base;
  const ir::TensorType &base = vector->tensor();
  bool isWhole = base.numElements() == type.sizes[2] && base.isContiguous() &&
                 (type.sizes[2] == 1 || type.strides[2] == 1);
  return type.sizes[1] == 1 && isWhole ? vector : nullptr;
}

bool selectTokens(Node &node, PatternRewriter &rewriter) {
  auto cat = ir::CatOp::of(node);
  const ir::TensorType &type = node.result()->tensor();
  if (!cat || type.rank() != 3 || (cat->dim() != 1 && cat->dim() != -2))
    return false;
  const Arg::List &operands = cat->tensors().list();
  if (operands.size() != 2)
    return rewriter.notifyMatchFailure(node, "it does not concatenate one token and patches");
  if (!isFloating(type.dtype))
    return rewriter.notifyMatchFailure(node, "its elements are not floats");
  Value *first = operands.front().value(), *patches = operands.back().value();
  // cat also accepts an empty vector, and converts dtypes.
  if (first->tensor().rank() != 3 || patches->tensor().rank() != 3 ||
      first->tensor().dtype != type.dtype || patches->tensor().dtype != type.dtype)
    return rewriter.notifyMatchFailure(node, "an operand has another rank or dtype");
  Value *token = repeatedVector(first);
  if (!token)
    return rewriter.notifyMatchFailure(
        node, "the first operand is not one vector [E] repeated for each batch");
  if (token->tensor().rank() != 1)
    token = rewriter.create(OpKind::View, {token, Arg::ints(ir::Dims{type.sizes[2]})}, node, &node)
                ->result();
  Node *tokens = rewriter.create(OpKind::CgcTokens, {patches, token, Arg()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), tokens->result());
  return true;
}

bool takePositions(Node &node, PatternRewriter &rewriter) {
  auto sum = addedPositions(node, OpKind::CgcTokens, rewriter);
  if (!sum)
    return false;
  auto tokens = ir::CgcTokensOp::of(sum->tokens);
  if (tokens->positions())
    return rewriter.notifyMatchFailure(node, "the tokens have positions already");
  Value *positions = asMatrix(sum->positions, node, rewriter);
  Node *fused = rewriter.create(OpKind::CgcTokens, tokens->node().argsWith("positions", positions),
                                node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kSelectTokensPatterns[] = {
    CGC_PATTERN(selectTokens),
    CGC_PATTERN(takePositions),
};

} // namespace

/// Replaces a class token concatenated before patches by cgc.tokens, including the added positions.
struct SelectTokensPass {
  static constexpr const char *name = "select-tokens";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectTokensPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectTokensPatterns, context);
}

CGC_DEFINE_PASS(SelectTokensPass)

} // namespace cgc::passes
