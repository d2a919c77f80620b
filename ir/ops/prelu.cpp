// aten.prelu: a rectifier with a trained slope.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPrelu(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &weight = args.tensor("weight");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"weight"}));
  const int64_t channels = self.rank() >= 2 ? self.sizes[1] : 1;
  if (weight.rank() > 1 || (weight.numElements() != 1 && weight.numElements() != channels))
    return rules::mismatch(
        "weight", "one number, or one for each of " + llvm::Twine(channels) + " channels of 'self'",
        weight);
  return rules::addDense(results, self.dtype, self.sizes);
}

Result<Values> definePrelu(OpBuilder &b) {
  Value *self = b.input("self"), *weight = b.input("weight");
  const int64_t rank = self->tensor().rank(), channels = weight->tensor().numElements();
  Dims sizes(static_cast<size_t>(rank), 1);
  if (rank >= 2)
    sizes[1] = channels;
  weight = b.reshape(weight, sizes);
  Value *isPositive = b.call(OpKind::Gt, {self, 0.0});
  return Values{b.call(OpKind::Where, {isPositive, self, b.mul(weight, self)})};
}

} // namespace

const OpDef defs::Prelu = {
    .schema = "(Tensor self, Tensor weight) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferPrelu,
    .decompose = definePrelu,
    .doc = "self where it is above 0, else weight * self; weight has one number, or one for each "
           "index of dimension 1. Floating dtypes.",
};

} // namespace cgc::ir
