// Backend: specialised graphs -> LaunchPlan: lowering, memory plan, weights deduplicated by
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

/// One specialised graph (no host ops, no in-place ops, every value typed) of one entry. Borrowed.
struct EntryBucket {
  std::string entry;
  const ir::Graph *graph;
};

/// A plan and, for each of its weights, the bytes. `bytes` are owned by `data` of the modules'
/// parameters.
struct CompiledPlan {
  PlanData plan;
  std::vector<std::shared_ptr<const ir::TensorData>> weights;
};

/// Lowers the buckets, in order. Usage, with all that is not of that form and the pass to run
/// first, if a graph is not. Unsupported, with the offender in `diagnostics`, if a node has no
/// lowering, or if buckets of one entry have outputs that differ in more than their sizes.
Result<CompiledPlan> lower(std::span<const EntryBucket> buckets, LowerOptions options,
                           ir::Diagnostics &diagnostics);

} // namespace cgc::backend
