// Backend: lowers specialized graphs to a plan, plans its memory, and deduplicates its weights by
// content.
#pragma once

#include "backend/lower_options.h"
#include "ir/diagnostics.h"
#include "ir/module.h"
#include "runtime/plan/plan.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cgc::backend {

/// One specialized graph of one entry: no host ops, no in-place ops, every value typed. Borrows the
/// graph.
struct EntryBucket {
  std::string entry;
  const ir::Graph *graph;
  /// Lets independent chains of the graph run at the same time, which takes memory for each. Only
  /// for target cuda.
  bool branches = true;
};

/// A bucket whose records are in branches, and what that costs.
struct BranchedBucket {
  std::string entry;
  size_t bucket = 0; ///< Its index in the entry.
  uint32_t branches = 0;
  /// The arena of the bucket, and the one that it would need if its records ran in order.
  uint64_t arenaBytes = 0, serialArenaBytes = 0;
};

/// A plan and the data of each of its weights, shared with the parameters of the modules.
struct CompiledPlan {
  PlanData plan;
  std::vector<std::shared_ptr<const ir::TensorData>> weights;
  std::vector<BranchedBucket> branched;
};

/// Lowers the buckets, in order. Usage if a graph is not specialized; the message lists the nodes
/// and the pass to run first. Unsupported, with the offender in `diagnostics`, if a node has no
/// lowering or if the outputs of two buckets of one entry differ in more than their sizes.
Result<CompiledPlan> lower(std::span<const EntryBucket> buckets, LowerOptions options,
                           ir::Diagnostics &diagnostics);

} // namespace cgc::backend
