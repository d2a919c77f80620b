// Match: helpers for patterns.
#include "passes/match.h"

#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

/// Returns the offset of result `index` in argument 0's memory; nullopt if it has memory of its
/// own.
std::optional<int64_t> viewOffset(const ir::Node &node, unsigned index) {
  if (node.kind() != ir::NodeKind::CallFunction || !ir::hasTrait(node.op(), ir::kView) ||
      node.isInPlace())
    return std::nullopt;
  auto inferred = ir::inferResults(node.op(), node.args(), node.result()->tensor().device);
  CGC_CHECK(inferred && "a typed node is refused by its rule");
  return (*inferred)[index].viewOffset;
}

} // namespace

bool isView(const ir::Node &node) {
  return viewOffset(node, 0).has_value();
}

Layout layoutOf(ir::Value *value) {
  Layout layout{value, 0};
  while (auto offset = viewOffset(*layout.base->node(), layout.base->index())) {
    layout.offset += *offset;
    layout.base = layout.base->node()->arg(0).value();
  }
  return layout;
}

bool sameLayout(const ir::TensorType &a, const ir::TensorType &b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes || a.device != b.device)
    return false;
  for (size_t i = 0; i < a.sizes.size(); ++i)
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i])
      return false;
  return true;
}

bool isIdentity(llvm::ArrayRef<int64_t> dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

ir::Dims inverse(llvm::ArrayRef<int64_t> dims) {
  ir::Dims result(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    result[dims[i]] = static_cast<int64_t>(i);
  return result;
}

ir::Node *definingOp(const ir::Value *value, ir::OpKind op) {
  return value->node()->is(op) ? value->node() : nullptr;
}

void replaceAllUsesWith(ir::GraphRewriter &rewriter, ir::Value *from, ir::Value *to) {
  bool same = from->type() == to->type();
  rewriter.replaceAllUsesWith(from, to);
  if (same)
    return;
  ir::Node *refused = ir::reinferTypes(rewriter.graph());
  CGC_CHECK(!refused && "a rewrite changed strides that an op needs");
}

} // namespace cgc::passes
