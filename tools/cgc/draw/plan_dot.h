// DOT of a launch plan: what waits for what.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace cgc::tool {

/// One cluster for each entry, drawn for its first bucket (support/dot_graph.h): records as nodes,
/// in their modules, an edge from the record that wrote a byte to each one that reads it. `entry`
/// limits it to one entry; empty: all.
std::string planDot(const PlanData &plan, std::string_view entry);

} // namespace cgc::tool
