// aten.unfold: the windows of a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferUnfold(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim,
                       rules::wrapDim("dimension", args.integer("dimension"), self.rank()));
  const int64_t window = args.integer("size"), step = args.integer("step");
  const int64_t size = self.rank() == 0 ? 1 : self.sizes[dim]; // A 0-d tensor is one element.
  if (window < 0 || window > size)
    return rules::mismatch("size", "between 0 and " + llvm::Twine(size), window);
  if (step < 1)
    return rules::mismatch("step", "at least 1", step);
  Dims sizes = self.sizes, strides = self.strides;
  if (self.rank() == 0)
    return rules::addView(results, self, {window}, {1});
  sizes[dim] = (size - window) / step + 1;
  sizes.push_back(window);
  if (__builtin_mul_overflow(strides[dim], step, &strides[dim]))
    return rules::mismatch("step", "within the tensor's size", step);
  strides.push_back(self.strides[dim]);
  return rules::addView(results, self, sizes, strides);
}

/// Adds the elements of all windows at their places, in a fixed order.
Status backwardUnfold(GradientBuilder &b) {
  Value *self = b.input("self"), *grad = b.grad();
  const InferArgs args = b.args();
  if (self->tensor().rank() == 0) {
    b.set("self", b.call(OpKind::Sum, {grad}));
    return Status::ok();
  }
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dimension", args.integer("dimension"),
                                                         self->tensor().rank()));
  const int64_t windows = grad->tensor().sizes[dim], size = args.integer("size");
  Value *starts = b.mul(b.call(OpKind::Arange, {0, windows}), args.integer("step"));
  Value *offsets = b.call(OpKind::Arange, {0, size});
  Value *places = b.add(b.call(OpKind::Unsqueeze, {starts, 1}), offsets);
  Dims order; // The elements of a window come behind its number.
  for (int64_t d = 0; d < self->tensor().rank(); ++d) {
    order.push_back(d);
    if (d == dim)
      order.push_back(self->tensor().rank());
  }
  Arg::List indices(static_cast<size_t>(dim) + 1);
  indices.back() = places;
  b.set("self",
        b.call(OpKind::IndexPut, {b.zerosLike(self), indices,
                                  b.call(OpKind::Permute, {grad, Arg::ints(order)}), true}));
  return Status::ok();
}

} // namespace

const OpDef defs::Unfold = {
    .schema = "(Tensor self, int dimension, int size, int step) -> Tensor",
    .traits = kPure | kView,
    .infer = inferUnfold,
    .batch = batch::otherDims,
    .gradient = backwardUnfold,
    .doc = "The windows of `size` elements of a dimension that begin at multiples of step, in a "
           "new last dimension. Windows may overlap.",
};

} // namespace cgc::ir
