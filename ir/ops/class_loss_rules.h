// class_loss_rules: the losses of classes, nll_loss and cross_entropy_loss.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The dimension of the classes in scores [C], [N, C] or [N, C, ...].
int64_t classDim(const TensorType &scores);

/// Adds the result of a loss of 'self', scores of C classes [C], [N, C] or [N, C, ...], for a
/// 'target' of indices (i64) of its sizes without the classes, or of probabilities of self's sizes
/// and dtype if `takesProbabilities`. 'weight', [C], is optional.
Status classLoss(const InferArgs &args, Results &results, bool takesProbabilities);

/// The loss of log-probabilities for targets that are class indices: the negative log-probability
/// of the class, mixed with the mean of all classes for `smoothing`, each by the weight of its
/// class. Rows whose target is `ignore_index` count nothing. The mean divides by the weights of the
/// targets.
Result<Values> indexLoss(OpBuilder &b, Value *logProbabilities, double smoothing);

/// The loss for targets that are the probabilities of the classes. The mean divides by the number
/// of rows, whatever the weights.
Result<Values> probabilityLoss(OpBuilder &b, Value *logProbabilities, double smoothing);

} // namespace cgc::ir::rules
