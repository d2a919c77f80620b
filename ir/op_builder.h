// OpBuilder: adds calls to a specialized graph for the rules of one op: its gradient
// (OpDef::gradient) and its definition (OpDef::decompose).
#pragma once

#include "ir/op_def.h"
#include "ir/rewriter.h"

#include <initializer_list>

namespace cgc::ir {

class OpBuilder {
public:
  /// Borrows all. Calls are inserted before `before`, with the location of `node`, the call that
  /// the rule is for.
  OpBuilder(GraphRewriter &rewriter, Node *node, Node *before)
      : rewriter_(rewriter), node_(node), before_(before) {}

  // The call.
  const Node &node() const { return *node_; }
  /// The argument called `name`.
  const Arg &arg(llvm::StringRef name) const { return node_->arg(name); }
  /// All arguments, for the helpers of type rules.
  InferArgs args() const { return {opSchema(node_->op()), node_->args()}; }
  /// The argument called `name` as a number, which it must be.
  double number(llvm::StringRef name) const { return *arg(name).asNumber(); }
  /// The tensor argument called `name`; null for none and for a number.
  Value *input(llvm::StringRef name) const;
  /// The elements of the tensor list called `name`.
  std::vector<Value *> inputs(llvm::StringRef name) const;
  Value *result(unsigned i = 0) const { return node_->result(i); }

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
  Value *permute(Value *a, llvm::ArrayRef<int64_t> dims) {
    return call(OpKind::Permute, {a, Arg::ints(dims)});
  }
  /// The sum over `dims`, which may be empty: `a` itself.
  Value *sum(Value *a, llvm::ArrayRef<int64_t> dims, bool keepDim);
  Value *reshape(Value *a, llvm::ArrayRef<int64_t> sizes);
  Value *expand(Value *a, llvm::ArrayRef<int64_t> sizes);
  Value *to(Value *a, DType dtype);
  /// `a` in f32 if it has 16 bits, else `a` itself.
  Value *widened(Value *a);
  Value *zerosLike(Value *a);
  /// `a` where `condition` holds, else 0.
  Value *where(Value *condition, Value *a);

protected:
  GraphRewriter &rewriter_;
  Node *node_;
  Node *before_;
};

} // namespace cgc::ir
