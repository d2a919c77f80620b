// cgc.gradient_norm: the Euclidean norm of several tensors together.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcGradientNorm(const InferArgs &args, rules::Results &results) {
  for (const TensorType *gradient : args.tensors("gradients"))
    if (!isFloating(gradient->dtype))
      return rules::mismatch("gradients", "of floating dtypes", *gradient);
  return rules::addDense(results, DType::F32, {});
}

/// The norm of the norms of the tensors, in f64 if one of them is.
Result<Values> defineCgcGradientNorm(OpBuilder &b) {
  const std::vector<Value *> gradients = b.inputs("gradients");
  if (gradients.empty())
    return Values{b.zerosLike(b.result())};
  const DType dtype =
      llvm::any_of(gradients,
                   [](const Value *gradient) { return gradient->tensor().dtype == DType::F64; })
          ? DType::F64
          : DType::F32;
  const auto norm = [&](Value *of) {
    return b.call(OpKind::LinalgVectorNorm, {of, 2, Arg(), false, dtype});
  };
  Arg::List norms;
  for (Value *gradient : gradients)
    norms.emplace_back(norm(gradient));
  return Values{b.to(norm(b.call(OpKind::Stack, {std::move(norms)})), DType::F32)};
}

} // namespace

const OpDef defs::CgcGradientNorm = {
    .schema = "(Tensor[] gradients) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcGradientNorm,
    .decompose = defineCgcGradientNorm,
    .doc = "f32[]: the square root of the sum of the squares of all elements of all tensors. Not "
           "finite if one of them is not.",
};

} // namespace cgc::ir
