// cgc.dropout: dropout by random numbers that are a function of seed, offset and position.
#include "ir/gradient.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcDropout(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  for (llvm::StringRef name : {"seed", "offset"})
    if (args.tensor(name).dtype != DType::I64 || args.tensor(name).rank() != 0)
      return rules::mismatch(name, "i64[]", args.tensor(name));
  const double p = args.number("p");
  if (!(p >= 0 && p <= 1))
    return rules::refuse("expected 'p' to be in [0, 1]");
  if (args.integer("stream") < 0)
    return rules::mismatch("stream", "at least 0", args.integer("stream"));
  return rules::addDense(results, self.dtype, self.sizes);
}

/// The same elements of the gradient are dropped: the numbers are drawn again.
Status dropGradient(GradientBuilder &b) {
  b.set("self", b.call(OpKind::CgcDropout,
                       {b.grad(), b.arg("seed"), b.arg("offset"), b.arg("p"), b.arg("stream")}));
  return Status::ok();
}

Result<Values> defineCgcDropout(OpBuilder &b) {
  Value *self = b.input("self");
  const double p = b.number("p");
  if (p == 1)
    return Values{b.zerosLike(self)};
  Value *drawn = b.call(OpKind::CgcUniform, {Arg::ints(self->tensor().sizes), b.arg("seed"),
                                             b.arg("offset"), b.arg("stream")});
  Value *isDropped = b.call(OpKind::Lt, {drawn, p});
  return Values{b.call(OpKind::Where, {isDropped, 0.0, b.mul(self, 1 / (1 - p))})};
}

} // namespace

const OpDef defs::CgcDropout = {
    .schema = "(Tensor self, Tensor seed, Tensor offset, float p, int stream) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcDropout,
    .gradient = dropGradient,
    .decompose = defineCgcDropout,
    .doc =
        "self / (1 - p) where cgc.uniform of self's sizes with the same seed, offset and stream is "
        "at least p, else 0; zeros for p = 1.",
};

} // namespace cgc::ir
