// tunePlan(): tunes a plan, for the verbs compile (--tune) and tune.
#pragma once

#include "tools/cgc/cli/progress.h"
#include "tuner/tuner.h"

namespace cgc::tool {

/// Tunes the plan as one phase of `progress`. `opLibraries` must contain the op libraries that the
/// plan calls. Logs candidates that could not be tried.
Result<tuner::Tuned> tunePlan(const Plan &plan, const std::vector<std::string> &opLibraries,
                              Progress &progress);

} // namespace cgc::tool
