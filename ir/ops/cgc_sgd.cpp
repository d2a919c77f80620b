// cgc.sgd: one step of stochastic gradient descent for a list of parameters.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return args.number("momentum") == 0
             ? rules::optimizerUpdate(args, results, {"parameters"})
             : rules::optimizerUpdate(args, results, {"parameters", "momenta"});
}

} // namespace

const OpDef defs::Sgd = {
    .schema =
        "(Tensor[] parameters, Tensor[] gradients, Tensor[] momenta, Tensor lr, Tensor step, "
        "Tensor? scale=none, Tensor? skip=none, float momentum=0.0, float dampening=0.0, float "
        "weight_decay=0.0, bool nesterov=false, dtype? copy=none) -> Tensor[]",
    .traits = kPure | kMove,
    .infer = infer,
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
