// Names that the compiler gives to parts of a training plan and that the runtime looks up.
#pragma once

namespace cgc {

/// The entries of a training plan. `step` computes the loss, its first output, and writes the new
/// values of the states. `evaluate`, which a plan need not have, writes no state but
/// kOffsetState.
inline constexpr const char *kStepEntry = "step", *kEvaluateEntry = "evaluate";
/// The entry that gives the states of role `copy` the values of their parameters, in a plan that
/// has such states. It has no inputs, and the number of steps as its output, i64[]. `step` relies
/// on copies that equal the rounded parameters: run it when a context was created, when its states
/// were reset, and when a parameter was written.
inline constexpr const char *kRefreshEntry = "refresh";

/// Entries that accumulate. `gradient.first` and `gradient.next` compute the loss and the gradients
/// of a micro-batch; the first one overwrites the accumulated gradients, the other one adds to
/// them. `update` has no inputs: it updates the parameters by the mean of the gradients, and its
/// first output is the mean loss. A plan has all three or none.
inline constexpr const char *kFirstGradientEntry = "gradient.first",
                            *kNextGradientEntry = "gradient.next", *kUpdateEntry = "update";

/// Ends the name of the state of a parameter's accumulated gradient.
inline constexpr const char *kGradientSuffix = ":gradient";
/// The number of micro-batches since the last update, i64[].
inline constexpr const char *kMicroBatchesState = "accumulated:micro_batches";
/// The sum of their losses, f32[] or f64[].
inline constexpr const char *kLossSumState = "accumulated:loss";

/// Begins the names of the optimizer's control states.
inline constexpr const char *kOptimizerPrefix = "optimizer:";
/// The number of steps so far, i64[].
inline constexpr const char *kStepState = "optimizer:step";
/// The learning rate of each group before the schedule, f32[G].
inline constexpr const char *kLrState = "optimizer:lr";

/// What the loss is multiplied by before the backward pass, f32[], if gradients are of f16.
inline constexpr const char *kLossScaleState = "optimizer:loss_scale";
/// The steps since the last change of the loss scale, i64[].
inline constexpr const char *kGrowthTrackerState = "optimizer:growth_tracker";
/// The steps that updated nothing, as a gradient was not finite, i64[].
inline constexpr const char *kSkippedState = "optimizer:skipped";

/// The name of the notes in a file of safetensors, which no state can have.
inline constexpr const char *kNotesName = "__metadata__";

/// Ends the name of the average of a parameter.
inline constexpr const char *kAverageSuffix = ":ema";

/// The seed of random numbers, i64[], which the caller sets.
inline constexpr const char *kSeedState = "random:seed";
/// The number of runs so far, i64[].
inline constexpr const char *kOffsetState = "random:offset";

} // namespace cgc
