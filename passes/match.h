// Match: helpers with which patterns inspect a graph and redirect uses.
#pragma once

#include "ir/op_def.h"
#include "ir/op_views.h"
#include "ir/rewriter.h"

#include <optional>

namespace cgc::passes {

/// Returns true if `node` is a call whose results all alias argument 0's memory.
bool isAlias(const ir::Node &node);
/// Returns true for a cast to the dtype and device that its argument has, which is an alias.
bool isEqualCast(const ir::Node &node);
/// As isAlias(), but false for a detach that a gradient has yet to stop at, and for an equal cast,
/// which another precision may make a real one.
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

/// The operands of an op on two tensors.
struct Operands {
  ir::Value *first, *second;
};
/// Returns the operands of a sum of two tensors, in both orders; an empty list if `node` is no sum,
/// scales an operand, or adds a number.
llvm::SmallVector<Operands, 2> operandsOfSum(const ir::Node &node);
/// Returns the operands of a product of two tensors, in both orders; an empty list if `node` is no
/// product, or multiplies by a number.
llvm::SmallVector<Operands, 2> operandsOfProduct(const ir::Node &node);

/// A layer_norm over the last dimension of one tensor: aten.layer_norm, or cgc.add_layer_norm
/// without an addend and row statistics.
struct RowNorm {
  ir::Node *node;
  ir::Value *input;
  ir::Value *weight, *bias; ///< Null if absent.
  ir::Value *result;        ///< The normalized rows.
};
/// Returns the norm that `node` is; nullopt if it is none.
std::optional<RowNorm> rowNormOf(ir::Node &node);
/// Returns the norm whose result `value` is and that has no other used results; nullopt if there is
/// none.
std::optional<RowNorm> onlyRowNormOf(const ir::Value *value);

/// strides.cpp: returns the first user of `value`, followed through views, that cannot read the
/// strides of `type` at no extra cost; null if there is none: views stay views, ops read such
/// strides directly, and the strides of the graph's outputs do not change.
const ir::Node *findStridesRefused(const ir::Value *value, const ir::TensorType &type);
/// Returns the reason of a match failure: `reader` was found by findStridesRefused for `type`.
std::string stridesRefused(const ir::Node &reader, const ir::TensorType &type);

/// Replaces all uses of `from` with `to`, and recomputes types if the strides differ.
void replaceAllUsesWith(ir::GraphRewriter &rewriter, ir::Value *from, ir::Value *to);

} // namespace cgc::passes
