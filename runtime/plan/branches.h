// Branches: the parts of a bucket whose records have no order among all of them.
#pragma once

#include "runtime/plan/plan.h"

#include <span>
#include <vector>

namespace cgc {

/// The records [begin, end) of a bucket, all of them in branches and the neighbors in branch 0. Two
/// records of a region are ordered, as the plan lists them, if they are in one branch, and only
/// then. Records that are not in one region are always ordered. Collectives of kCollectiveBranch
/// are left out: they may stand in a region or beside one.
struct ParallelRegion {
  size_t begin = 0, end = 0;
  bool operator==(const ParallelRegion &) const = default;
};

/// The regions of a bucket with these records, in order.
CGC_API std::vector<ParallelRegion> parallelRegions(std::span<const LaunchRecord> records);

/// The number of records in kCollectiveBranch.
CGC_API size_t collectivesBeside(const Bucket &bucket);

/// The largest LaunchRecord::branch of the bucket, without kCollectiveBranch.
CGC_API uint32_t largestBranch(const Bucket &bucket);

} // namespace cgc
