// OpBuilder: adds the calls of an op's rules.
#include "ir/op_builder.h"

#include "runtime/base/check.h"

namespace cgc::ir {

Value *OpBuilder::input(llvm::StringRef name) const {
  const Arg &argument = arg(name);
  return argument.isValue() ? argument.value() : nullptr;
}

std::vector<Value *> OpBuilder::inputs(llvm::StringRef name) const {
  std::vector<Value *> values;
  for (const Arg &element : arg(name).list())
    values.push_back(element.value());
  return values;
}

Node *OpBuilder::callNode(OpKind op, std::vector<Arg> args) {
  const Schema &schema = opSchema(op);
  for (size_t i = args.size(); i < schema.args.size(); ++i) {
    CGC_CHECK(schema.args[i].defaultValue && "a rule leaves out an argument");
    args.push_back(*schema.args[i].defaultValue);
  }
  return rewriter_.create(op, std::move(args), *node_, before_);
}

Value *OpBuilder::call(OpKind op, std::initializer_list<Arg> args) {
  return callNode(op, args)->result();
}

Value *OpBuilder::sum(Value *a, llvm::ArrayRef<int64_t> dims, bool keepDim) {
  if (dims.empty())
    return a;
  return call(OpKind::Sum, {a, Arg::ints(dims), keepDim});
}

Value *OpBuilder::reshape(Value *a, llvm::ArrayRef<int64_t> sizes) {
  return llvm::ArrayRef(a->tensor().sizes) == sizes ? a
                                                    : call(OpKind::Reshape, {a, Arg::ints(sizes)});
}

Value *OpBuilder::expand(Value *a, llvm::ArrayRef<int64_t> sizes) {
  return llvm::ArrayRef(a->tensor().sizes) == sizes ? a
                                                    : call(OpKind::Expand, {a, Arg::ints(sizes)});
}

Value *OpBuilder::to(Value *a, DType dtype) {
  return a->tensor().dtype == dtype ? a : call(OpKind::To, {a, dtype});
}

Value *OpBuilder::widened(Value *a) {
  return dtypeSize(a->tensor().dtype) == 2 ? to(a, DType::F32) : a;
}

Value *OpBuilder::zerosLike(Value *a) {
  const TensorType &type = a->tensor();
  return call(OpKind::Full, {Arg::ints(type.sizes), 0.0, type.dtype});
}

Value *OpBuilder::where(Value *condition, Value *a) {
  return call(OpKind::Where, {condition, a, 0.0});
}

} // namespace cgc::ir
