// fallback: splits a schema such as "aten::add.Tensor(Tensor self, ...) -> Tensor".
#include "ir/fallback.h"

#include "runtime/base/check.h"

namespace cgc::ir {

FallbackName fallbackName(const Node &node) {
  CGC_CHECK(node.is(OpKind::Fallback) && "only an aten.fallback has a schema");
  const llvm::StringRef full = llvm::StringRef(node.target()).split('(').first;
  const auto [op, overload] = full.split('.');
  return {full, op, overload};
}

} // namespace cgc::ir
