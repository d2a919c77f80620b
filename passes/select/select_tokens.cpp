// select-tokens: replaces a class token concatenated before patches, and positions, with
// cgc.tokens.
#include "passes/canonicalize/run_patterns.h"
#include "passes/manager/registered_pass.h"
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
  Layout layout = layoutOf(value);
  const ir::TensorType &base = layout.base->tensor();
  bool isWhole = base.numElements() == type.sizes[2] && base.isContiguous() && layout.offset == 0 &&
                 (type.sizes[2] == 1 || type.strides[2] == 1);
  return type.sizes[1] == 1 && isWhole ? layout.base : nullptr;
}

bool selectTokens(Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Cat) || node.arg("tensors").list().size() != 2)
    return false;
  const ir::TensorType &type = node.result()->tensor();
  int64_t dim = node.arg("dim").as<int64_t>();
  if (type.rank() != 3 || (dim != 1 && dim != -2) || !isFloating(type.dtype))
    return false;
  Value *first = node.arg("tensors").list()[0].value(),
        *patches = node.arg("tensors").list()[1].value();
  // cat also accepts an empty vector, and converts dtypes.
  if (first->tensor().rank() != 3 || patches->tensor().rank() != 3 ||
      first->tensor().dtype != type.dtype || patches->tensor().dtype != type.dtype)
    return false;
  Value *token = repeatedVector(first);
  if (!token)
    return false;
  if (token->tensor().rank() != 1)
    token = rewriter.create(OpKind::View, {token, Arg::ints(ir::Dims{type.sizes[2]})}, node, &node)
                ->result();
  Node *tokens = rewriter.create(OpKind::Tokens, {patches, token, Arg()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), tokens->result());
  return true;
}

bool takePositions(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  auto sum = addedPositions(node, OpKind::Tokens, uses);
  if (!sum || !sum->op->arg("positions").isNone())
    return false;
  Value *positions = asMatrix(sum->positions, node, rewriter);
  Node *tokens =
      rewriter.create(OpKind::Tokens, {sum->op->arg(0), sum->op->arg(1), positions}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), tokens->result());
  return true;
}

constexpr Pattern kPatterns[] = {selectTokens, takePositions};

} // namespace

/// Replaces a class token concatenated before patches by cgc.tokens, including the added positions.
struct SelectTokensPass {
  static constexpr const char *name = "select-tokens";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectTokensPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectTokensPass)

} // namespace cgc::passes
