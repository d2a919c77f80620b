// gradient_rules: backward rules that several ops share, and their helpers.
#include "ir/ops/gradient_rules.h"

#include "ir/ops/rules.h"

namespace cgc::ir::gradient {

// ---- Helpers

InferArgs args(const GradientBuilder &b) {
  return {opSchema(b.node().op()), b.node().args()};
}

double number(const GradientBuilder &b, llvm::StringRef name) {
  return *b.arg(name).asNumber();
}

Value *scaled(GradientBuilder &b, Value *a, double factor) {
  return factor == 1 ? a : b.mul(a, factor);
}

Value *power(GradientBuilder &b, Value *a, double exponent) {
  return exponent == 1 ? a : b.call(OpKind::Pow, {a, exponent});
}

Value *productOfRows(GradientBuilder &builder, Value *a, Value *b) {
  auto rows = [&](Value *value) {
    const TensorType &type = value->tensor();
    const int64_t width = type.sizes.back();
    int64_t count = 1;
    for (int64_t size : llvm::ArrayRef(type.sizes).drop_back())
      count *= size;
    return builder.reshape(value, {count, width});
  };
  return builder.matmul(builder.transposed(rows(a)), rows(b));
}

Result<Value *> withReducedDims(GradientBuilder &b, Value *a, llvm::StringRef dim) {
  const TensorType &self = b.input("self")->tensor();
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args(b), dim, self.rank()));
  return b.reshape(a, rules::reducedSizes(self.sizes, reduced, /*keepDim=*/true));
}

Result<int64_t> reducedCount(const GradientBuilder &b) {
  const TensorType &self = b.input("self")->tensor();
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args(b), "dim", self.rank()));
  int64_t count = 1;
  for (auto [size, isReduced] : llvm::zip_equal(self.sizes, reduced))
    count *= isReduced ? size : 1;
  return count;
}

Value *placed(GradientBuilder &b, Value *part, int64_t dim, int64_t start, int64_t step) {
  Value *self = b.input("self");
  const int64_t size = self->tensor().sizes[dim], count = part->tensor().sizes[dim];
  if (step != 1)
    return b.call(OpKind::SliceScatter, {b.zerosLike(self), part, dim, start, size, step});
  if (count == size)
    return part;
  Dims pad(2 * (self->tensor().sizes.size() - static_cast<size_t>(dim)));
  pad[pad.size() - 2] = start; // The last dimension comes first.
  pad[pad.size() - 1] = size - start - count;
  return b.call(OpKind::ConstantPad, {part, Arg::ints(pad)});
}

// ---- Complete rules

Status identity(GradientBuilder &b) {
  b.set("self", b.grad());
  return Status::ok();
}

Status reshaped(GradientBuilder &b) {
  b.set("self", b.reshape(b.grad(), b.input("self")->tensor().sizes));
  return Status::ok();
}

Status difference(GradientBuilder &b, int sign) {
  const llvm::StringRef minuend = sign > 0 ? "self" : "other", other = sign > 0 ? "other" : "self";
  b.set(minuend, b.grad());
  if (b.needs(other))
    b.set(other, b.neg(scaled(b, b.grad(), number(b, "alpha"))));
  return Status::ok();
}

Status addedProduct(GradientBuilder &b, llvm::StringRef left, llvm::StringRef right) {
  if (b.needs("self"))
    b.set("self", scaled(b, b.grad(), number(b, "beta")));
  if (!b.needs(left) && !b.needs(right))
    return Status::ok();
  Value *grad = scaled(b, b.grad(), number(b, "alpha"));
  if (b.needs(left))
    b.set(left, b.matmul(grad, b.transposed(b.input(right))));
  if (b.needs(right))
    b.set(right, b.matmul(b.transposed(b.input(left)), grad));
  return Status::ok();
}

} // namespace cgc::ir::gradient
