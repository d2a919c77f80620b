// aten.logcumsumexp: logarithm of a running sum of exponentials.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferLogCumsumExp(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  return rules::addDense(results, self.dtype, self.sizes);
}

/// The sum of grad * exp(self - result) from this element on. Its logarithm is a running sum of
/// exponentials from the end, of the positive and of the negative gradients.
Status backwardLogCumsumExp(GradientBuilder &b) {
  Value *self = b.input("self"), *grad = b.grad();
  const Arg &dim = b.arg("dim");
  const auto flipped = [&](Value *value) {
    return self->tensor().rank() == 0 ? value : b.call(OpKind::Flip, {value, Arg::List{dim}});
  };
  const auto sumFromHere = [&](Value *gradients) {
    Value *terms = b.sub(b.call(OpKind::Log, {gradients}), b.result());
    Value *sums = flipped(b.call(OpKind::LogCumsumExp, {flipped(terms), dim}));
    return b.call(OpKind::Exp, {b.add(sums, self)});
  };
  Value *positive = sumFromHere(b.call(OpKind::Relu, {grad}));
  b.set("self", b.sub(positive, sumFromHere(b.call(OpKind::Relu, {b.neg(grad)}))));
  return Status::ok();
}

} // namespace

const OpDef defs::LogCumsumExp = {
    .schema = "(Tensor self, int dim) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferLogCumsumExp,
    .aten = "copy aten::logcumsumexp",
    .batch = batch::otherDims,
    .gradient = backwardLogCumsumExp,
    .doc = "The logarithm of the sum of the exponentials of all elements up to and including this "
           "one along dim; floating dtypes.",
};

} // namespace cgc::ir
