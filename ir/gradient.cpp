// GradientBuilder: sums the gradients of backward rules.
#include "ir/gradient.h"

#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {

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
