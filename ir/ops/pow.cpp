// aten.pow: power.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPow(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, rules::pointwise(args, {"self", "exponent"}));
  if (const int64_t *exponent = args["exponent"].getIf<int64_t>())
    if (*exponent < 0 && !isFloating(type.dtype))
      return rules::mismatch("exponent", "at least 0 for integers", *exponent);
  return rules::pointwiseResult(args, {"self", "exponent"}, results, /*allowBool=*/false);
}

/// 0 at an exponent of 0 even where the power of self below is infinite, and 0 for the exponent
/// where self is 0: so does LibTorch.
Status backwardPow(GradientBuilder &b) {
  const DType dtype = b.result()->tensor().dtype;
  // The operands, converted so that integers and bools can be computed with.
  Value *base = b.input("self"), *exponent = b.input("exponent");
  base = base ? b.to(base, dtype) : b.call(OpKind::Full, {Arg::ints(Dims()), b.arg("self"), dtype});
  if (!exponent) {
    const double power = b.number("exponent");
    b.set("self",
          power == 0
              ? b.zerosLike(base)
              : b.mul(b.grad(), gradient::scaled(b, gradient::power(b, base, power - 1), power)));
    return Status::ok();
  }
  exponent = b.to(exponent, dtype);
  if (b.needs("self")) {
    Value *derivative = b.mul(exponent, b.call(OpKind::Pow, {base, b.sub(exponent, 1)}));
    b.set("self", b.call(OpKind::Where,
                         {b.call(OpKind::Eq, {exponent, 0}), 0.0, b.mul(b.grad(), derivative)}));
  }
  if (b.needs("exponent")) {
    Value *isZero = b.call(OpKind::LogicalAnd,
                           {b.call(OpKind::Eq, {base, 0}), b.call(OpKind::Ge, {exponent, 0})});
    Value *derivative = b.mul(b.result(), b.call(OpKind::Log, {base}));
    b.set("exponent", b.mul(b.grad(), b.call(OpKind::Where, {isZero, 0.0, derivative})));
  }
  return Status::ok();
}

} // namespace

const OpDef defs::Pow = {
    .schema = "(Tensor|number self, Tensor|number exponent) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferPow,
    .evaluate = host::pow,
    .gradient = backwardPow,
    .doc = "self to the power of exponent, broadcast, dtypes promoted.",
};

} // namespace cgc::ir
