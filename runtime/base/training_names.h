// Names that the compiler gives to parts of a training plan and that the runtime looks up.
#pragma once

namespace cgc {

/// The entries of a training plan. `step` computes the loss, its first output, and writes the new
/// values of the states. `evaluate`, which a plan need not have, writes no state.
inline constexpr const char *kStepEntry = "step", *kEvaluateEntry = "evaluate";

/// Begins the names of the optimizer's control states.
inline constexpr const char *kOptimizerPrefix = "optimizer:";
/// The number of steps so far, i64[].
inline constexpr const char *kStepState = "optimizer:step";
/// The learning rate of each group before the schedule, f32[G].
inline constexpr const char *kLrState = "optimizer:lr";

/// Ends the name of the average of a parameter.
inline constexpr const char *kAverageSuffix = ":ema";

/// The seed of random numbers, i64[], which the caller sets.
inline constexpr const char *kSeedState = "random:seed";
/// The number of runs so far, i64[].
inline constexpr const char *kOffsetState = "random:offset";

} // namespace cgc
