// The pattern that replaces composite ops of ATen by their definitions.
#include "ir/decompose.h"
#include "passes/canonicalize/patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

bool decomposeAten(ir::Node &node, PatternRewriter &rewriter) {
  if (node.kind() != ir::NodeKind::CallFunction || !ir::opDef(node.op()).decompose ||
      !ir::opName(node.op()).starts_with("aten."))
    return false;
  const Result<ir::Values> values = ir::decompose(rewriter, node);
  if (!values.isOk())
    return rewriter.notifyMatchFailure(node, values.status().message());
  for (auto [value, result] : llvm::zip_equal(*values, node.results()))
    if (value)
      replaceAllUsesWith(rewriter, &result, value);
  return true;
}

} // namespace cgc::passes
