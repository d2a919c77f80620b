// What compile --tune and tune share.
#pragma once

#include "tools/cgc/cli/progress.h"
#include "tuner/tuner.h"

namespace cgc::tool {

/// Tunes the plan, whose op libraries are among `opLibraries`, as one phase of `progress`. What
/// could not be tried goes to the log.
Result<tuner::Tuned> tunePlan(const Plan &plan, const std::vector<std::string> &opLibraries,
                              Progress &progress);

} // namespace cgc::tool
