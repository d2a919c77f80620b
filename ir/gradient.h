// GradientBuilder: the interface of OpDef::gradient, the backward rule of one op.
//
// `differentiate` visits the calls of a specialized graph in reverse order and gives each rule the
// gradients of the call's results. A rule builds the gradients of the arguments from ops of the
// table. It has the concrete types of all values.
#pragma once

#include "ir/op_builder.h"

#include "llvm/ADT/DenseMap.h"

namespace cgc::ir {

class GradientBuilder : public OpBuilder {
public:
  /// Borrows all. Calls are inserted before `before`. `gradients` has the gradient of each value
  /// that has one so far; `needed` tells the values whose gradients are wanted.
  GradientBuilder(GraphRewriter &rewriter, Node *node, Node *before,
                  llvm::DenseMap<const Value *, Value *> &gradients,
                  llvm::function_ref<bool(const Value *)> needed)
      : OpBuilder(rewriter, node, before), gradients_(gradients), needed_(needed) {}

  // The gradients so far.
  /// The gradient of result `i`; null if the loss does not depend on it. It has the result's sizes
  /// and dtype.
  Value *grad(unsigned i = 0) const;
  /// As grad(), with zeros in place of null.
  Value *gradOrZeros(unsigned i);
  /// Whether the gradient of the tensor argument called `name`, or of an element of the list, is
  /// wanted. False for none and for a number.
  bool needs(llvm::StringRef name) const;
  bool needs(const Value *value) const { return value && needed_(value); }

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
  llvm::DenseMap<const Value *, Value *> &gradients_; ///< Looked up, never iterated.
  llvm::function_ref<bool(const Value *)> needed_;
};

namespace gradient {

/// For results that do not depend on the arguments differentiably, such as comparisons: no argument
/// gets a gradient.
Status none(GradientBuilder &builder);

} // namespace gradient

} // namespace cgc::ir
