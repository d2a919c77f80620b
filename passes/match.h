// Helpers with which patterns look at a graph and redirect uses.
#pragma once

#include "ir/op_def.h"
#include "ir/rewriter.h"
#include "ir/uses.h"

namespace cgc::passes {

/// Whether `node` is a call whose results all lie in argument 0's memory.
bool isView(const ir::Node &node);

/// Where `value` lies in the memory of the nearest value above it that is no view.
struct Layout {
  ir::Value *base = nullptr; ///< `value` itself if it is no view.
  int64_t offset = 0;        ///< From base's first element, in elements.
};
Layout layoutOf(ir::Value *value);

/// Whether both address memory in the same way: equal but for strides of dimensions of size 1.
bool sameLayout(const ir::TensorType &a, const ir::TensorType &b);

/// If `type` is contiguous once its dimensions are put into another order: that order.
std::optional<ir::Dims> denseOrder(const ir::TensorType &type);

/// Whether `dims` is 0, 1, 2, ...
bool isIdentity(llvm::ArrayRef<int64_t> dims);
/// The permutation that undoes `dims`.
ir::Dims inverse(llvm::ArrayRef<int64_t> dims);

/// The call of `op` that yields `value`, or null.
ir::Node *definedBy(const ir::Value *value, ir::OpKind op);

/// strides.cpp: whether all users of `value`, followed through views, could do with strides of
/// `type` at no extra cost: views stay views, ops read such strides directly, and the strides of
/// the graph's outputs stay as they are.
bool acceptsStrides(ir::Value *value, const ir::TensorType &type);

/// Points the users of `from` at `to` and recomputes types if the strides differ.
void replaceUses(ir::GraphRewriter &rewriter, ir::Value *from, ir::Value *to);

} // namespace cgc::passes
