// aten.nll_loss: negative log-likelihood.
#include "ir/ops/class_loss_rules.h"

namespace cgc::ir {

const OpDef defs::NllLoss = {
    .schema = "(Tensor self, Tensor target, Tensor? weight=none, int reduction=1, int "
              "ignore_index=-100) -> Tensor",
    .traits = kPure | kReduction,
    .infer = [](const InferArgs &args,
                rules::Results &results) { return rules::classLoss(args, results, false); },
    .decompose = [](OpBuilder &b) { return rules::indexLoss(b, b.input("self"), 0); },
    .doc = "The negative of self, log-probabilities [N, C, ...] or [C], at the class target, times "
           "its weight [C], and 0 where target is ignore_index; reduced. The mean divides by the "
           "weights of the targets.",
};

} // namespace cgc::ir
