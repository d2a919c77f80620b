// Memory picture: the arena of a plan's buckets against time, as SVG.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace cgc::tool {

/// One chart for each bucket, one rectangle for each buffer: from the record that writes it to the
/// last that reads it, and from its first byte in the arena to its last. `entry` limits it to one
/// entry; empty: all. With `drawing`, an SVG of its own, below the charts, which are as wide. The
/// same text for the same plan.
std::string planSvg(const PlanData &plan, std::string_view entry, const std::string &drawing);

} // namespace cgc::tool
