// aten.rms_norm: normalization by the root mean square.
#include "ir/ops/normalization_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRmsNorm(const InferArgs &args, rules::Results &results) {
  return rules::layerNorm(args, results, {"weight"});
}

/// In f32 for 16 bits. Without eps it is that of the dtype of the computation, as in LibTorch.
Result<Values> defineRmsNorm(OpBuilder &b) {
  Value *input = b.input("input");
  const DType dtype = input->tensor().dtype;
  Value *x = b.widened(input);
  const double eps =
      b.arg("eps").isNone() ? rules::machineEpsilon(x->tensor().dtype) : b.number("eps");
  const Dims dims = rules::normalizedDims(b.args());
  Value *mean = b.call(OpKind::Mean, {b.call(OpKind::Pow, {x, 2}), Arg::ints(dims), true});
  Value *y = b.mul(x, b.call(OpKind::Rsqrt, {b.add(mean, eps)}));
  return Values{b.to(b.arg("weight").isNone() ? y : b.mul(y, b.arg("weight")), dtype)};
}

} // namespace

const OpDef defs::RmsNorm = {
    .schema =
        "(Tensor input, int[] normalized_shape, Tensor? weight=none, float? eps=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferRmsNorm,
    .decompose = defineRmsNorm,
    .doc = "input [..., normalized_shape] divided by the root of the mean of its squares over its "
           "last dimensions plus eps, times weight. Everything is computed in f32 for 16 bits.",
};

} // namespace cgc::ir
