// GradientBuilder: the interface of OpDef::gradient, the backward rule of one op.
//
// `differentiate` visits the calls of a specialized graph in reverse order and gives each rule the
// gradients of the call's results. A rule builds the gradients of the arguments from ops of the
// table. It has the concrete types of all values.
#pragma once

#include "ir/op_def.h"
#include "ir/rewriter.h"

#include "llvm/ADT/DenseMap.h"

#include <initializer_list>

namespace cgc::ir {

class GradientBuilder {
public:
  /// Borrows all. Calls are inserted before `before`. `gradients` has the gradient of each value
  /// that has one so far; `needed` tells the values whose gradients are wanted.
  GradientBuilder(GraphRewriter &rewriter, Node *node, Node *before,
                  llvm::DenseMap<const Value *, Value *> &gradients,
                  llvm::function_ref<bool(const Value *)> needed)
      : rewriter_(rewriter), node_(node), before_(before), gradients_(gradients), needed_(needed) {}

  // The call.
  const Node &node() const { return *node_; }
  /// The argument called `name`.
  const Arg &arg(llvm::StringRef name) const { return node_->arg(name); }
  /// The tensor argument called `name`; null for none and for a number.
  Value *input(llvm::StringRef name) const;
  /// The elements of the tensor list called `name`.
  std::vector<Value *> inputs(llvm::StringRef name) const;
  Value *result(unsigned i = 0) const { return node_->result(i); }
  /// The gradient of result `i`; null if the loss does not depend on it. It has the result's sizes
  /// and dtype.
  Value *grad(unsigned i = 0) const;
  /// As grad(), with zeros in place of null.
  Value *gradOrZeros(unsigned i);
  /// Whether the gradient of the tensor argument called `name`, or of an element of the list, is
  /// wanted. False for none and for a number.
  bool needs(llvm::StringRef name) const;
  bool needs(const Value *value) const { return value && needed_(value); }

  // Building. The arguments are in schema order; trailing ones with a default may be left out.
  /// Adds a call with one result, which the op's rule must accept.
  Value *call(OpKind op, std::initializer_list<Arg> args);
  /// Adds a call and returns its node.
  Node *callNode(OpKind op, std::vector<Arg> args);
  Value *add(Arg a, Arg b) { return call(OpKind::Add, {std::move(a), std::move(b)}); }
  Value *sub(Arg a, Arg b) { return call(OpKind::Sub, {std::move(a), std::move(b)}); }
  Value *mul(Arg a, Arg b) { return call(OpKind::Mul, {std::move(a), std::move(b)}); }
  Value *div(Arg a, Arg b) { return call(OpKind::Div, {std::move(a), std::move(b)}); }
  Value *neg(Value *a) { return call(OpKind::Neg, {a}); }
  Value *matmul(Value *a, Value *b) { return call(OpKind::Matmul, {a, b}); }
  /// `a` with its last two dimensions swapped.
  Value *transposed(Value *a) { return call(OpKind::Transpose, {a, int64_t{-2}, int64_t{-1}}); }
  /// The sum over `dims`, which may be empty: `a` itself.
  Value *sum(Value *a, llvm::ArrayRef<int64_t> dims, bool keepDim);
  Value *reshape(Value *a, llvm::ArrayRef<int64_t> sizes);
  Value *expand(Value *a, llvm::ArrayRef<int64_t> sizes);
  Value *to(Value *a, DType dtype);
  Value *zerosLike(Value *a);
  /// `a` where `condition` holds, else 0.
  Value *where(Value *condition, Value *a);

  // Results of the rule.
  /// Adds `gradient` to the gradient of the tensor argument called `name`, if needs(name): sums
  /// over the dimensions along which the argument was broadcast, and converts to its dtype. The
  /// sizes of `gradient` must be those of the argument, or those that it was broadcast to.
  void set(llvm::StringRef name, Value *gradient);
  /// The same for an argument, or for an element of a tensor list.
  void set(Value *argument, Value *gradient);
  /// Replaces the call by a call of `op`, which computes the same results first and then more that
  /// the backward pass reads, and returns its node. node() is then the new call.
  Node *replaceForward(OpKind op, std::vector<Arg> args);

private:
  GraphRewriter &rewriter_;
  Node *node_;
  Node *before_;
  llvm::DenseMap<const Value *, Value *> &gradients_; ///< Looked up, never iterated.
  llvm::function_ref<bool(const Value *)> needed_;
};

namespace gradient {

/// For results that do not depend on the arguments differentiably, such as comparisons: no argument
/// gets a gradient.
Status none(GradientBuilder &builder);

} // namespace gradient

} // namespace cgc::ir
