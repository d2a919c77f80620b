// cgc.adam: one step of Adam or AdamW for a list of parameters.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return rules::optimizerUpdate(args, results, {"parameters", "exp_avgs", "exp_avg_sqs"});
}

} // namespace

const OpDef defs::Adam = {
    .schema =
        "(Tensor[] parameters, Tensor[] gradients, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
        "Tensor lr, Tensor step, Tensor? scale=none, Tensor? skip=none, float beta1=0.9, float "
        "beta2=0.999, float eps=1e-08, float weight_decay=0.0, bool decoupled=false, "
        "dtype? copy=none) -> Tensor[]",
    .traits = kPure | kMove,
    .infer = infer,
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
