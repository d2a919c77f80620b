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

Arg product(OpImporter &op, const Arg &a, const Arg &b) {
  return op.emit(OpKind::Mul, {{"self", a}, {"other", b}});
}

/// `values` with each class's element multiplied by its weight; the classes are in dimension `dim`.
Arg weighted(OpImporter &op, const Arg &values, const Arg &dim) {
  const Arg weight = op.arg("weight");
  if (weight.isNone())
    return values;
  const auto swap = [&](const Arg &tensor) { // The class is the last dimension, or is back.
    return op.emit(OpKind::Transpose, {{"self", tensor}, {"dim0", dim}, {"dim1", -1}});
  };
  return swap(product(op, swap(values), weight));
}

Arg sumOfClasses(OpImporter &op, const Arg &values, const Arg &dim) {
  return op.emit(OpKind::Sum, {{"self", values}, {"dim", Arg::List{dim}}});
}

/// The number of classes.
Arg countOf(OpImporter &op, const Arg &values, const Arg &dim) {
  return op.emit(OpKind::Size, {{"self", values}, {"dim", dim}});
}

/// The loss of log-probabilities of classes, which are in dimension `dim`, for targets that are
/// class indices: the negative log-probability of the class, mixed with the mean of all classes for
/// `smoothing`, each by the weight of its class. Rows whose target is `ignore_index` count nothing.
/// The mean divides by the weights of the targets, as torch.nn.functional.cross_entropy does.
Arg classLoss(OpImporter &op, const Arg &logProbabilities, const Arg &dim, double smoothing) {
  const Arg weight = op.arg("weight"), target = op.arg("target");
  const Arg counts = op.emit(OpKind::Ne, {{"self", target}, {"other", op.arg("ignore_index")}});
  const Arg classes =
      op.emit(OpKind::Where, {{"condition", counts}, {"self", target}, {"other", 0}});
  const Arg index = op.emit(OpKind::Unsqueeze, {{"self", classes}, {"dim", dim}});
  const Arg picked =
      op.emit(OpKind::Squeeze,
              {{"self", op.emit(OpKind::Gather,
                                {{"self", logProbabilities}, {"dim", dim}, {"index", index}})},
               {"dim", Arg::List{dim}}});
  Arg losses = op.emit(OpKind::Neg, {{"self", picked}}), weights = counts;
  if (!weight.isNone()) {
    const Arg own = op.emit(OpKind::Index, {{"self", weight}, {"indices", Arg::List{classes}}});
    weights = op.emit(OpKind::Where, {{"condition", counts}, {"self", own}, {"other", 0.0}});
    losses = product(op, losses, own);
  }
  if (smoothing != 0) {
    const Arg mean =
        weight.isNone()
            ? op.emit(OpKind::Mean, {{"self", logProbabilities}, {"dim", Arg::List{dim}}})
            : op.emit(OpKind::Div,
                      {{"self", sumOfClasses(op, weighted(op, logProbabilities, dim), dim)},
                       {"other", countOf(op, logProbabilities, dim)}});
    losses = op.emit(OpKind::Sub, {{"self", product(op, losses, 1 - smoothing)},
                                   {"other", product(op, mean, smoothing)}});
  }
  losses = op.emit(OpKind::Where, {{"condition", counts}, {"self", losses}, {"other", 0.0}});
  return reduced(op, losses, weights);
}

/// The loss for targets that are the probabilities of the classes. The mean divides by the number
/// of rows, whatever the weights.
Arg probabilityLoss(OpImporter &op, const Arg &logProbabilities, const Arg &dim, double smoothing) {
  Arg target = op.arg("target");
  if (smoothing != 0) {
    const Arg share =
        op.emit(OpKind::Div, {{"self", smoothing}, {"other", countOf(op, logProbabilities, dim)}});
    target = op.emit(OpKind::Add, {{"self", product(op, target, 1 - smoothing)}, {"other", share}});
  }
  const Arg all = weighted(op, product(op, logProbabilities, target), dim);
  return reduced(op, op.emit(OpKind::Neg, {{"self", sumOfClasses(op, all, dim)}}));
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
  const Arg scores = op.emit(OpKind::LogSoftmax, {{"self", self}, {"dim", dim}});
  return op.chooseBranch(
      op.emit(OpKind::PrimIsFloating, {{"self", op.arg("target")}}),
      [&] { return probabilityLoss(op, scores, dim, smoothing.as<double>()); },
      [&] { return classLoss(op, scores, dim, smoothing.as<double>()); });
}

} // namespace cgc::frontend
