// DOT of a plan: draws the data dependences between records.
#pragma once

#include "runtime/plan/plan.h"

#include <string>

namespace cgc::tool {

/// One cluster for each entry, drawn for its first bucket (support/dot_graph.h). Nodes are records,
/// nested in their modules; an edge leads from the record that wrote a byte to each record that
/// reads it. `entry` selects one entry; empty: all.
std::string planDot(const PlanData &plan, std::string_view entry);

} // namespace cgc::tool
