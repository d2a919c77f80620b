// OpView: the base of the classes that name the arguments of an op. ir/op_views.h, which
// generate.cpp writes from the schemas, has one such class for each op with an inference rule.
#pragma once

#include "ir/graph.h"
#include "runtime/base/check.h"

#include <optional>

namespace cgc::ir {

/// A call of the op `kKind`, seen through `Op`, the class derived from this one. A handle, as a
/// `Node *` is: it is copied freely and does not make the node const.
///
///     if (auto linear = LinearOp::of(value))
///       use(linear->input(), linear->bias());
///
/// An accessor returns a tensor as `Value *`, null for an argument that is none; a constant as its
/// C++ type, in a std::optional if the schema allows none; a list of ints as Dims; any other
/// argument as `const Arg &`. Constants must be known, as they are from `specialize` on.
template <class Op, OpKind kKind> class OpView {
public:
  /// Returns the view of `node`; nullopt if it is no call of this op.
  static std::optional<Op> of(const Node &node) {
    return node.is(kKind) ? std::optional(Op(const_cast<Node &>(node))) : std::nullopt;
  }
  /// Returns the view of the call that defines `value`; nullopt if another node defines it.
  static std::optional<Op> of(const Value *value) { return of(*value->node()); }

  Node &node() const { return *node_; }
  Value *result(unsigned i = 0) const { return node_->result(i); }

protected:
  explicit OpView(Node &node) : node_(&node) {}

  const Arg &arg(unsigned i) const { return node_->args()[i]; }
  /// Returns a `T` whose absence is an error of the caller.
  template <class T> static T known(std::optional<T> value) {
    CGC_CHECK(value && "an argument is not a constant");
    return *std::move(value);
  }
  /// Returns the constant at position `i`; nullopt if the argument is none.
  template <class T> std::optional<T> optional(unsigned i) const {
    return arg(i).isNone() ? std::nullopt : std::optional<T>(arg(i).template as<T>());
  }

private:
  Node *node_;
};

} // namespace cgc::ir
