// aten.linalg_vector_norm: vector norm over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <cmath>

namespace cgc::ir {
namespace {

Status inferLinalgVectorNorm(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (rules::promote(dtype, self.dtype) != dtype)
    return rules::refuse("expected 'dtype' to be floating and at least as wide as " +
                         std::string(dtypeName(self.dtype)) + ", got " +
                         std::string(dtypeName(dtype)));
  double ord = args.number("ord");
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0 && (ord < 0 || std::isinf(ord)))
      return rules::mismatch("self", "nonempty in every reduced dimension for this 'ord'", self);
  return rules::addDense(results, dtype,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

/// 0 where the norm is 0, though it has a kink there.
Status backwardLinalgVectorNorm(GradientBuilder &b) {
  Value *self = b.to(b.input("self"), b.result()->tensor().dtype);
  CGC_ASSIGN_OR_RETURN(Value * norm, gradient::withReducedDims(b, b.result()));
  CGC_ASSIGN_OR_RETURN(Value * grad, gradient::withReducedDims(b, b.grad()));
  const double order = b.number("ord");
  Value *isZero = b.call(OpKind::Eq, {norm, 0});
  if (order == 0) {
    b.set("self", b.zerosLike(self));
  } else if (order == 2) {
    b.set("self", b.mul(grad, gradient::unless(b, isZero, b.div(self, norm))));
  } else if (order == 1) {
    b.set("self", b.mul(grad, b.call(OpKind::Sign, {self})));
  } else if (std::isinf(order)) { // The extremes share the gradient.
    Value *isExtreme = b.call(OpKind::Eq, {b.call(OpKind::Abs, {self}), norm});
    Value *count = b.call(OpKind::Sum, {b.to(isExtreme, self->tensor().dtype), b.arg("dim"), true});
    Value *share = b.where(isExtreme, b.div(grad, count));
    b.set("self", b.mul(b.call(OpKind::Sign, {self}), share));
  } else {
    // |self| / norm to the power of order - 1, which is infinite at 0 for orders below 1.
    Value *derivative = gradient::power(b, b.call(OpKind::Abs, {self}), order - 1);
    derivative = b.div(derivative, gradient::power(b, norm, order - 1));
    derivative = b.mul(b.call(OpKind::Sign, {self}), derivative);
    isZero = order < 1 ? b.call(OpKind::Eq, {self, 0}) : isZero;
    b.set("self", b.mul(grad, gradient::unless(b, isZero, derivative)));
  }
  return Status::ok();
}

} // namespace

const OpDef defs::LinalgVectorNorm = {
    .schema = "(Tensor self, number ord=2, int[]? dim=none, bool keepdim=false, dtype? dtype=none) "
              "-> Tensor",
    .traits = kPure | kReduction,
    .infer = inferLinalgVectorNorm,
    .batch = batch::reduction,
    .gradient = backwardLinalgVectorNorm,
    .doc =
        "The ord-norm over the listed dimensions, or over all if there are none; floating dtypes.",
};

} // namespace cgc::ir
