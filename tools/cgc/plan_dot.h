// DOT of a launch plan: what waits for what.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace cgc::tool {

/// One cluster for each entry, drawn for its first bucket: records as nodes, an edge from the
/// record that wrote a byte to each one that reads it. Deterministic. `entry` limits it to one
/// entry; empty: all.
std::string planDot(const PlanData &plan, std::string_view entry);

} // namespace cgc::tool
