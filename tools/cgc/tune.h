// What compile --tune and tune share.
#pragma once

#include "tools/cgc/progress.h"
#include "tools/tuner/tuner.h"

namespace cgc::tool {

/// Tunes the plan as one phase of `progress`. What could not be tried goes to the log.
Result<tuner::Tuned> tunePlan(const Plan &plan, Progress &progress);

} // namespace cgc::tool
