// Match: helpers with which patterns inspect a graph and redirect uses.
#pragma once

#include "ir/op_def.h"
#include "ir/rewriter.h"
#include "ir/uses.h"

namespace cgc::passes {

/// Returns true if `node` is a call whose results all alias argument 0's memory.
bool isView(const ir::Node &node);

/// The position of a value in the memory of its base, the nearest value above it that is not a
/// view.
struct Layout {
  ir::Value *base = nullptr; ///< The value itself if it is not a view.
  int64_t offset = 0;        ///< From base's first element, in elements.
};
Layout layoutOf(ir::Value *value);

/// Returns true if both address memory in the same way: equal except for the strides of size-1
/// dimensions.
bool sameLayout(const ir::TensorType &a, const ir::TensorType &b);

/// Returns true if `dims` is 0, 1, 2, ...
bool isIdentity(llvm::ArrayRef<int64_t> dims);
/// Returns the inverse permutation of `dims`.
ir::Dims inverse(llvm::ArrayRef<int64_t> dims);

/// Returns the call of `op` that defines `value`, or null.
ir::Node *definingOp(const ir::Value *value, ir::OpKind op);

/// strides.cpp: returns true if all users of `value`, followed through views, can read the strides
/// of `type` at no extra cost: views stay views, ops read such strides directly, and the strides of
/// the graph's outputs do not change.
bool acceptsStrides(ir::Value *value, const ir::TensorType &type);

/// Replaces all uses of `from` with `to`, and recomputes types if the strides differ.
void replaceAllUsesWith(ir::GraphRewriter &rewriter, ir::Value *from, ir::Value *to);

} // namespace cgc::passes
