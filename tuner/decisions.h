// The tuner's decisions that need no GPU: the winner of timed choices, and the kernels that a plan
// may get.
#pragma once

#include "backend/lower_options.h"
#include "runtime/plan/plan.h"

#include <cstddef>
#include <span>
#include <vector>

namespace cgc::tuner {

/// The median of at least one sample; of an even number, the larger one of the two in the middle.
double median(std::vector<double> samples);

/// The index of the choice that a plan gets. `samples` holds microseconds of the bucket with each
/// choice, at least one sample of each; the last choice is the plan's own. The winner has the least
/// median, but the own choice keeps its place unless the gain is above the noise.
size_t winnerOf(std::span<const std::vector<double>> samples);

/// The architecture whose kernels a tuned plan may use. A plan without a kernel for sm_90a gets
/// none, so that it still runs on other GPUs.
backend::Arch archOf(const PlanData &plan);

} // namespace cgc::tuner
