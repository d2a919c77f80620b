// cgc.sgd: one step of stochastic gradient descent for a list of parameters.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcSgd(const InferArgs &args, rules::Results &results) {
  return args.number("momentum") == 0
             ? rules::optimizerUpdate(args, results, {"parameters"})
             : rules::optimizerUpdate(args, results, {"parameters", "momenta"});
}

Result<Values> defineCgcSgd(OpBuilder &b) {
  if (std::optional<Values> split = rules::splitByDType(b, {"parameters", "gradients", "momenta"}))
    return *split;
  const double momentum = b.number("momentum"), dampening = b.number("dampening"),
               decay = b.number("weight_decay");
  Value *isFirst = momentum == 0 ? nullptr : b.call(OpKind::Eq, {b.arg("step"), 1});
  const auto update = [&](llvm::ArrayRef<Value *> old, Value *gradient) {
    Value *parameter = old[0];
    if (decay != 0)
      gradient = b.call(OpKind::Add, {gradient, parameter, decay});
    if (momentum == 0)
      return Values{b.sub(parameter, b.mul(gradient, b.arg("lr")))};
    Value *moved = b.call(OpKind::Add, {b.mul(old[1], momentum), gradient, 1 - dampening});
    Value *mean = b.call(OpKind::Where, {isFirst, gradient, moved});
    if (b.args().boolean("nesterov"))
      gradient = b.call(OpKind::Add, {gradient, mean, momentum});
    else
      gradient = mean;
    return Values{b.sub(parameter, b.mul(gradient, b.arg("lr"))), mean};
  };
  if (momentum == 0)
    return rules::updated(b, {"parameters"}, update);
  return rules::updated(b, {"parameters", "momenta"}, update);
}

} // namespace

const OpDef defs::CgcSgd = {
    .schema =
        "(Tensor[] parameters, Tensor[] gradients, Tensor[] momenta, Tensor lr, Tensor step, "
        "Tensor? scale=none, Tensor? skip=none, float momentum=0.0, float dampening=0.0, float "
        "weight_decay=0.0, bool nesterov=false, dtype? copy=none) -> Tensor[]",
    .traits = kPure | kMove,
    .infer = inferCgcSgd,
    .decompose = defineCgcSgd,
    .doc =
        "torch.optim.SGD: g = gradient * scale + weight_decay * parameter; with a momentum, m = g "
        "if step is 1, else momentum * m + (1 - dampening) * g, and g = m, or g + momentum * m "
        "with nesterov; parameter - lr * g. The results are the new parameters and, with a "
        "momentum, the new momenta; the old ones if skip is true; then, with copy, f16 or bf16, "
        "the new parameters in that dtype. lr and scale are of a floating dtype, step is i64[], "
        "the number of this step from 1 on, skip is bool[]. A gradient is converted to the dtype "
        "of its parameter.",
};

} // namespace cgc::ir
