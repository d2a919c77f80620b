// aten.cross_entropy_loss: cross entropy of classes.
#include "ir/ops/class_loss_rules.h"

namespace cgc::ir {
namespace {

Status inferCrossEntropyLoss(const InferArgs &args, rules::Results &results) {
  if (!(args.number("label_smoothing") >= 0 && args.number("label_smoothing") <= 1))
    return rules::refuse("expected 'label_smoothing' to be in [0, 1]");
  return rules::classLoss(args, results, true);
}

Result<Values> defineCrossEntropyLoss(OpBuilder &b) {
  Value *self = b.input("self");
  Value *logProbabilities = b.call(OpKind::LogSoftmax, {self, rules::classDim(self->tensor())});
  const double smoothing = b.number("label_smoothing");
  return isFloating(b.input("target")->tensor().dtype)
             ? rules::probabilityLoss(b, logProbabilities, smoothing)
             : rules::indexLoss(b, logProbabilities, smoothing);
}

} // namespace

const OpDef defs::CrossEntropyLoss = {
    .schema = "(Tensor self, Tensor target, Tensor? weight=none, int reduction=1, int "
              "ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCrossEntropyLoss,
    .decompose = defineCrossEntropyLoss,
    .doc =
        "nll_loss of log_softmax(self) for targets that are classes. Targets of self's sizes are "
        "probabilities: minus the sum of target * weight * log_softmax(self) over the classes, "
        "reduced; the mean divides by the number of rows.",
};

} // namespace cgc::ir
