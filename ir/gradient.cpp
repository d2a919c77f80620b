// GradientBuilder: adds the calls of backward rules, and sums gradients.
#include "ir/gradient.h"

#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {

Value *GradientBuilder::input(llvm::StringRef name) const {
  const Arg &argument = arg(name);
  return argument.isValue() ? argument.value() : nullptr;
}

std::vector<Value *> GradientBuilder::inputs(llvm::StringRef name) const {
  std::vector<Value *> values;
  for (const Arg &element : arg(name).list())
    values.push_back(element.value());
  return values;
}

Value *GradientBuilder::grad(unsigned i) const {
  return gradients_.lookup(result(i));
}

Value *GradientBuilder::gradOrZeros(unsigned i) {
  Value *gradient = grad(i);
  return gradient ? gradient : zerosLike(result(i));
}

bool GradientBuilder::needs(llvm::StringRef name) const {
  const Arg &argument = arg(name);
  bool needed = false;
  argument.forEachValue([&](const Value *value) { needed |= needs(value); });
  return needed;
}

Node *GradientBuilder::callNode(OpKind op, std::vector<Arg> args) {
  const Schema &schema = opSchema(op);
  for (size_t i = args.size(); i < schema.args.size(); ++i) {
    CGC_CHECK(schema.args[i].defaultValue && "a gradient rule leaves out an argument");
    args.push_back(*schema.args[i].defaultValue);
  }
  return rewriter_.create(op, std::move(args), *node_, before_);
}

Value *GradientBuilder::call(OpKind op, std::initializer_list<Arg> args) {
  return callNode(op, args)->result();
}

Value *GradientBuilder::sum(Value *a, llvm::ArrayRef<int64_t> dims, bool keepDim) {
  if (dims.empty())
    return a;
  return call(OpKind::Sum, {a, Arg::ints(dims), keepDim});
}

Value *GradientBuilder::reshape(Value *a, llvm::ArrayRef<int64_t> sizes) {
  return llvm::ArrayRef(a->tensor().sizes) == sizes ? a
                                                    : call(OpKind::Reshape, {a, Arg::ints(sizes)});
}

Value *GradientBuilder::expand(Value *a, llvm::ArrayRef<int64_t> sizes) {
  return llvm::ArrayRef(a->tensor().sizes) == sizes ? a
                                                    : call(OpKind::Expand, {a, Arg::ints(sizes)});
}

Value *GradientBuilder::to(Value *a, DType dtype) {
  return a->tensor().dtype == dtype ? a : call(OpKind::To, {a, dtype});
}

Value *GradientBuilder::zerosLike(Value *a) {
  const TensorType &type = a->tensor();
  return call(OpKind::Full, {Arg::ints(type.sizes), 0.0, type.dtype});
}

Value *GradientBuilder::where(Value *condition, Value *a) {
  return call(OpKind::Where, {condition, a, 0.0});
}

void GradientBuilder::set(llvm::StringRef name, Value *gradient) {
  if (Value *argument = input(name))
    set(argument, gradient);
}

void GradientBuilder::set(Value *argument, Value *gradient) {
  if (!needs(argument))
    return;
  const TensorType &type = argument->tensor();
  const Dims sizes = gradient->tensor().sizes; // A copy: the sum below has other sizes.
  CGC_CHECK(sizes.size() >= static_cast<size_t>(type.rank()) &&
            "a gradient has at least the argument's rank");
  const size_t added = sizes.size() - static_cast<size_t>(type.rank());
  Dims broadcast;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d < added || (type.sizes[d - added] == 1 && sizes[d] != 1))
      broadcast.push_back(static_cast<int64_t>(d));
  gradient = reshape(sum(gradient, broadcast, /*keepDim=*/true), type.sizes);
  gradient = to(gradient, type.dtype);
  Value *&known = gradients_[argument];
  known = known ? add(known, gradient) : gradient;
}

Node *GradientBuilder::replaceForward(OpKind op, std::vector<Arg> args) {
  const Schema &schema = opSchema(op);
  for (size_t i = args.size(); i < schema.args.size(); ++i)
    args.push_back(*schema.args[i].defaultValue);
  Node *fresh = rewriter_.create(op, std::move(args), *node_, node_);
  for (unsigned i = 0; i < node_->numResults(); ++i) {
    if (Value *gradient = gradients_.lookup(node_->result(i))) {
      gradients_[fresh->result(i)] = gradient;
      gradients_.erase(node_->result(i));
    }
    rewriter_.replaceAllUsesWith(node_->result(i), fresh->result(i));
  }
  rewriter_.erase(node_);
  return node_ = fresh;
}

Status gradient::none(GradientBuilder &) {
  return Status::ok();
}

} // namespace cgc::ir
