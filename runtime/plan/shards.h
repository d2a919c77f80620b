// Shards: which rank holds the states that the ranks of a plan divide among themselves.
#pragma once

#include "runtime/base/export.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc {

/// The rank that holds each shard, by its number; empty if the plan divides no states. The largest
/// shard first, each goes to the rank with the fewest bytes: all ranks find the same.
CGC_API std::vector<int> shardOwners(const PlanData &plan, int ranks);

/// The states that `rank` holds, by state.
CGC_API std::vector<bool> heldStates(const PlanData &plan, const std::vector<int> &owners,
                                     int rank);

} // namespace cgc
