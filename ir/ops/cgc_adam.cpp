// cgc.adam: one step of Adam or AdamW for a list of parameters.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcAdam(const InferArgs &args, rules::Results &results) {
  return rules::optimizerUpdate(args, results, {"parameters", "exp_avgs", "exp_avg_sqs"});
}

/// What depends on the step and not on the parameter is computed in f64, as in Python.
Result<Values> defineCgcAdam(OpBuilder &b) {
  if (std::optional<Values> split =
          rules::splitByDType(b, {"parameters", "gradients", "exp_avgs", "exp_avg_sqs"}))
    return *split;
  const double beta1 = b.number("beta1"), beta2 = b.number("beta2"),
               decay = b.number("weight_decay");
  const bool decoupled = b.args().boolean("decoupled");
  Value *lr = b.to(b.input("lr"), DType::F64), *step = b.to(b.input("step"), DType::F64);
  const auto correction = [&](double beta) {
    return b.call(OpKind::Rsub, {b.call(OpKind::Pow, {beta, step}), 1.0});
  };
  Value *stepSize = b.div(lr, correction(beta1));
  Value *rootOfCorrection = b.call(OpKind::Sqrt, {correction(beta2)});
  Value *shrink = decay != 0 && decoupled ? b.call(OpKind::Rsub, {b.mul(lr, decay), 1.0}) : nullptr;
  return rules::updated(b, {"parameters", "exp_avgs", "exp_avg_sqs"},
                        [&](llvm::ArrayRef<Value *> old, Value *gradient) {
                          Value *parameter = old[0];
                          const DType dtype = parameter->tensor().dtype;
                          if (shrink)
                            parameter = b.to(b.mul(parameter, shrink), dtype);
                          else if (decay != 0)
                            gradient = b.call(OpKind::Add, {gradient, parameter, decay});
                          Value *mean = b.call(OpKind::Lerp, {old[1], gradient, 1 - beta1});
                          Value *square = b.call(OpKind::Addcmul, {b.mul(old[2], beta2), gradient,
                                                                   gradient, 1 - beta2});
                          Value *root = b.div(b.call(OpKind::Sqrt, {square}), rootOfCorrection);
                          Value *divisor = b.add(root, b.arg("eps"));
                          Value *change = b.div(b.mul(mean, stepSize), divisor);
                          return Values{b.sub(parameter, change), mean, square};
                        });
}

} // namespace

const OpDef defs::CgcAdam = {
    .schema =
        "(Tensor[] parameters, Tensor[] gradients, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
        "Tensor lr, Tensor step, Tensor? scale=none, Tensor? skip=none, float beta1=0.9, float "
        "beta2=0.999, float eps=1e-08, float weight_decay=0.0, bool decoupled=false, "
        "dtype? copy=none) -> Tensor[]",
    .traits = kPure | kMove,
    .infer = inferCgcAdam,
    .decompose = defineCgcAdam,
    .doc =
        "torch.optim.Adam, or AdamW if decoupled: g = gradient * scale; weight_decay * parameter "
        "is added to g or, if decoupled, parameter = parameter * (1 - lr * weight_decay) first; m "
        "= beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; parameter - lr / (1 - "
        "beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps). The results are the new "
        "parameters, m and v; the old ones if skip is true; then, with copy, f16 or bf16, the new "
        "parameters in that dtype. lr and scale are of a floating dtype, step is i64[], the number "
        "of this step from 1 on, skip is bool[]. A gradient is converted to the dtype of its "
        "parameter.",
};

} // namespace cgc::ir
