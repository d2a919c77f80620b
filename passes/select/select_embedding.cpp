// select-embedding: replaces embedding plus positions with cgc.embedding.
#include "passes/canonicalize/run_patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/select/positions.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::OpKind;

/// Rewrites a narrowing cast of looked-up rows to a cast of the table, which `fold` evaluates.
bool castBeforeEmbedding(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::To))
    return false;
  Node *embedding = definingOp(node.arg("self").value(), OpKind::Embedding);
  DType dtype = node.result()->tensor().dtype;
  if (!embedding || !uses.hasOneUser(embedding->result()) ||
      !isConstant(embedding->arg("weight").value()) || !isFloating(dtype) ||
      dtypeSize(dtype) >= dtypeSize(embedding->result()->tensor().dtype))
    return false;
  Node *weight =
      rewriter.create(OpKind::To, {embedding->arg("weight"), dtype, ir::Arg()}, node, &node);
  Node *direct = rewriter.create(OpKind::Embedding, {weight->result(), embedding->arg("indices")},
                                 *embedding, &node);
  replaceAllUsesWith(rewriter, node.result(), direct->result());
  return true;
}

bool selectEmbedding(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  auto sum = addedPositions(node, OpKind::Embedding, uses);
  if (!sum || !isFloating(node.result()->tensor().dtype))
    return false;
  ir::Value *positions = asMatrix(sum->positions, node, rewriter);
  Node *fused =
      rewriter.create(OpKind::FusedEmbedding,
                      {sum->op->arg("indices"), sum->op->arg("weight"), positions}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kPatterns[] = {castBeforeEmbedding, selectEmbedding};

} // namespace

/// Replaces embedding plus positions by cgc.embedding. A narrowing cast of the looked-up rows
/// becomes a cast of the table.
struct SelectEmbeddingPass {
  static constexpr const char *name = "select-embedding";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectEmbeddingPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectEmbeddingPass)

} // namespace cgc::passes
