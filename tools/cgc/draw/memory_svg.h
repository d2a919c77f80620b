// Memory chart: draws the use of the arena of a plan's buckets over time, as SVG.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace cgc::tool {

/// One chart for each bucket, with one rectangle for each buffer: horizontally from the record that
/// writes it to the last that reads it, vertically from its first byte in the arena to its last.
/// `entry` selects one entry; empty: all. `drawing` is an SVG file to add below the charts, which
/// get its width, or empty. Deterministic.
std::string planSvg(const PlanData &plan, std::string_view entry, const std::string &drawing);

} // namespace cgc::tool
