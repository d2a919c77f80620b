// Branches: the parts of a bucket whose records have no order among all of them.
#pragma once

#include "runtime/plan/plan.h"

#include <array>
#include <span>
#include <vector>

namespace cgc {

/// The records [begin, end) of a bucket, all of them in branches and the neighbors in branch 0. Two
/// records of a region are ordered, as the plan lists them, if they are in one branch, and only
/// then. Records that are not in one region are always ordered. Those of detached branches are left
/// out: they may stand in a region or beside one.
struct ParallelRegion {
  size_t begin = 0, end = 0;
  bool operator==(const ParallelRegion &) const = default;
};

/// The regions of a bucket with these records, in order.
CGC_API std::vector<ParallelRegion> parallelRegions(std::span<const LaunchRecord> records);

/// A number for each detached branch, that of kCollectiveBranch first.
using DetachedCounts = std::array<uint32_t, kDetachedBranches>;

/// The most records of a detached branch, each of which is compared with all of the bucket.
inline constexpr uint32_t kMostDetached = 4096;
/// The number of records in each detached branch.
CGC_API DetachedCounts detachedRecords(const Bucket &bucket);

/// The largest LaunchRecord::branch of the bucket, without detached branches.
CGC_API uint32_t largestBranch(const Bucket &bucket);

} // namespace cgc
