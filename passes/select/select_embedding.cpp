// select-embedding: embedding plus positions -> cgc.embedding.
#include "passes/patterns/run.h"
#include "passes/select/positions.h"
#include "passes/select/select.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::OpKind;

bool selectEmbedding(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  auto sum = addedPositions(node, OpKind::Embedding, uses);
  if (!sum || !isFloating(node.result()->tensor().dtype))
    return false;
  ir::Value *positions = asMatrix(sum->positions, node, rewriter);
  Node *fused =
      rewriter.create(OpKind::FusedEmbedding,
                      {sum->op->arg("indices"), sum->op->arg("weight"), positions}, node, &node);
  replaceUses(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kPatterns[] = {selectEmbedding};

} // namespace

Result<Changed> SelectEmbeddingPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

} // namespace cgc::passes
