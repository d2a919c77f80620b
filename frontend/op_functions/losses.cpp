// Op functions: losses, composed of pointwise ops and reductions.
#include "frontend/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

namespace {

/// Applies the argument `reduction`, a value of at::Reduction: 0 none, 1 the mean, 2 the sum.
/// `weights`, unless none, are what the mean divides by, summed.
Arg reduced(OpImporter &op, const Arg &losses, const Arg &weights = {}) {
  Arg reduction = op.constant("reduction");
  if (!reduction.isConstant())
    return reduction; // It has been refused.
  if (reduction == Arg(0))
    return losses;
  if (reduction == Arg(1) && weights.isNone())
    return op.emit(OpKind::Mean, {{"self", losses}});
  Arg sum = op.emit(OpKind::Sum, {{"self", losses}});
  if (reduction == Arg(2))
    return sum;
  return op.emit(OpKind::Div,
                 {{"self", sum}, {"other", op.emit(OpKind::Sum, {{"self", weights}})}});
}

Arg difference(OpImporter &op) {
  return op.emit(OpKind::Sub, {{"self", op.arg("self")}, {"other", op.arg("target")}});
}

/// The dimension of classes: 0 of a vector, else 1.
Arg classDim(OpImporter &op, const Arg &scores) {
  const Arg rank = op.emit(OpKind::Dim, {{"self", scores}});
  return op.choose(op.emit(OpKind::PrimEqual, {{"a", rank}, {"b", 1}}), 0, 1);
}

/// The loss of log-probabilities of classes, which are in dimension `dim`, for targets that are
/// class indices: the negative log-probability of the class, mixed with the mean of all classes for
/// `smoothing`. Rows whose target is `ignore_index` count nothing.
Arg classLoss(OpImporter &op, const Arg &logProbabilities, const Arg &dim, double smoothing) {
  if (!op.arg("weight").isNone())
    return op.refuse("a loss with weights of classes is not supported; leave `weight` out, or "
                     "multiply the losses of reduction='none' by the weights");
  const Arg target = op.arg("target");
  const Arg counts = op.emit(OpKind::Ne, {{"self", target}, {"other", op.arg("ignore_index")}});
  const Arg classes =
      op.emit(OpKind::Where, {{"condition", counts}, {"self", target}, {"other", 0}});
  const Arg index = op.emit(OpKind::Unsqueeze, {{"self", classes}, {"dim", dim}});
  const Arg picked =
      op.emit(OpKind::Squeeze,
              {{"self", op.emit(OpKind::Gather,
                                {{"self", logProbabilities}, {"dim", dim}, {"index", index}})},
               {"dim", Arg::List{dim}}});
  Arg losses = op.emit(OpKind::Neg, {{"self", picked}});
  if (smoothing != 0) {
    const Arg mean = op.emit(OpKind::Mean, {{"self", logProbabilities}, {"dim", Arg::List{dim}}});
    const Arg own = op.emit(OpKind::Mul, {{"self", losses}, {"other", 1 - smoothing}});
    const Arg all = op.emit(OpKind::Mul, {{"self", mean}, {"other", smoothing}});
    losses = op.emit(OpKind::Sub, {{"self", own}, {"other", all}});
  }
  losses = op.emit(OpKind::Where, {{"condition", counts}, {"self", losses}, {"other", 0.0}});
  return reduced(op, losses, counts);
}

} // namespace

Arg importMseLoss(OpImporter &op) {
  const Arg by = difference(op);
  return reduced(op, op.emit(OpKind::Mul, {{"self", by}, {"other", by}}));
}

Arg importL1Loss(OpImporter &op) {
  return reduced(op, op.emit(OpKind::Abs, {{"self", difference(op)}}));
}

Arg importNllLoss(OpImporter &op) {
  const Arg self = op.arg("self");
  return classLoss(op, self, classDim(op, self), 0);
}

Arg importCrossEntropyLoss(OpImporter &op) {
  Arg smoothing = op.constant("label_smoothing");
  if (!smoothing.isConstant())
    return smoothing; // It has been refused.
  const Arg self = op.arg("self");
  const Arg dim = classDim(op, self);
  return classLoss(op, op.emit(OpKind::LogSoftmax, {{"self", self}, {"dim", dim}}), dim,
                   smoothing.as<double>());
}

} // namespace cgc::frontend
