// addBuckets: adds the buckets of a compilation to an existing plan of the same model.
#pragma once

#include "backend/backend.h"
#include "runtime/plan/plan_file.h"

#include <span>
#include <vector>

namespace cgc::driver {

/// A plan and the bytes of each of its weights, borrowed from the plans that it was made of.
struct ExtendedPlan {
  PlanData plan;
  std::vector<std::span<const std::byte>> weights;
};

/// Returns `plan` with the buckets of `added`. Weights with equal bytes are stored once, so that
/// only weights that depend on the sizes, such as resized positions, are new. The rows of an entry
/// are independent if both plans say so. Usage, naming it, if target, precision, GPU or the inputs
/// and outputs of an entry differ, or if the plan already has a bucket of these sizes.
Result<ExtendedPlan> addBuckets(const Plan &plan, const backend::CompiledPlan &added);

} // namespace cgc::driver
