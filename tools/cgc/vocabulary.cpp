// Vocabulary: follows an integer input to the embeddings that it indexes.
#include "tools/cgc/vocabulary.h"

#include "ir/op_def.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace cgc::tool {

int64_t embeddingBound(const ir::Graph &graph, const ir::Value &input) {
  // Values with elements of `input` and nothing else. Never iterated.
  llvm::SmallPtrSet<const ir::Value *, 8> same{&input};
  int64_t bound = 0;
  for (const ir::Node &node : graph) {
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    if (node.is(ir::OpKind::Embedding)) {
      const ir::Arg &indices = node.arg("indices"), &weight = node.arg("weight");
      if (!same.contains(indices.value()))
        continue;
      const int64_t rows = weight.value()->tensor().sizes[0];
      bound = bound == 0 ? rows : std::min(bound, rows);
      continue;
    }
    const bool keepsValues = ir::hasTrait(node.op(), ir::kView) || node.is(ir::OpKind::To) ||
                             node.is(ir::OpKind::Contiguous) || node.is(ir::OpKind::Clone);
    if (keepsValues && node.arg(0).isValue() && same.contains(node.arg(0).value()))
      for (const ir::Value &result : node.results())
        same.insert(&result);
  }
  return bound;
}

} // namespace cgc::tool
