// select-embedding: replaces embedding plus positions with cgc.embedding.
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"
#include "passes/select/positions.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::OpKind;

/// Rewrites a narrowing cast of looked-up rows to a cast of the table, which `fold` evaluates.
bool castBeforeEmbedding(Node &node, PatternRewriter &rewriter) {
  auto to = ir::ToOp::of(node);
  auto embedding = to ? ir::EmbeddingOp::of(to->self()) : std::nullopt;
  if (!embedding)
    return false;
  DType dtype = node.result()->tensor().dtype;
  if (!embedding->result()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the rows have other users");
  if (!isConstant(embedding->weight()))
    return rewriter.notifyMatchFailure(node, "the table is not a parameter");
  if (!isFloating(dtype) || dtypeSize(dtype) >= dtypeSize(embedding->result()->tensor().dtype))
    return rewriter.notifyMatchFailure(node, "the cast does not narrow floats");
  Node *weight = rewriter.create(OpKind::To, {embedding->weight(), dtype, ir::Arg()}, node, &node);
  Node *direct =
      rewriter.create(OpKind::Embedding, embedding->node().argsWith("weight", weight->result()),
                      embedding->node(), &node);
  replaceAllUsesWith(rewriter, node.result(), direct->result());
  return true;
}

bool selectEmbedding(Node &node, PatternRewriter &rewriter) {
  auto sum = addedPositions(node, OpKind::Embedding, rewriter);
  if (!sum)
    return false;
  if (!isFloating(node.result()->tensor().dtype))
    return rewriter.notifyMatchFailure(node, "the rows are not floats");
  ir::Value *positions = asMatrix(sum->positions, node, rewriter);
  auto embedding = ir::EmbeddingOp::of(sum->tokens);
  Node *fused =
      rewriter.create(OpKind::CgcEmbedding,
                      {embedding->indices(), embedding->weight(), positions, false}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kSelectEmbeddingPatterns[] = {
    CGC_PATTERN(castBeforeEmbedding),
    CGC_PATTERN(selectEmbedding),
};

} // namespace

/// Replaces embedding plus positions by cgc.embedding. A narrowing cast of the looked-up rows
/// becomes a cast of the table.
struct SelectEmbeddingPass {
  static constexpr const char *name = "select-embedding";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectEmbeddingPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectEmbeddingPatterns, context);
}

CGC_DEFINE_PASS(SelectEmbeddingPass)

} // namespace cgc::passes
