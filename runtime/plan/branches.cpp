// Branches: finds the regions of a bucket.
#include "runtime/plan/branches.h"

#include <algorithm>
#include <utility>

namespace cgc {

std::vector<ParallelRegion> parallelRegions(std::span<const LaunchRecord> records) {
  std::vector<ParallelRegion> regions;
  bool inRegion = false;
  for (size_t i = 0; i < records.size(); ++i) {
    if (isDetached(records[i].branch))
      continue;
    const bool wasInRegion = std::exchange(inRegion, records[i].branch != 0);
    if (!inRegion)
      continue;
    if (!wasInRegion)
      regions.push_back({i, i});
    regions.back().end = i + 1;
  }
  return regions;
}

DetachedCounts detachedRecords(const Bucket &bucket) {
  DetachedCounts counts{};
  for (const LaunchRecord &record : bucket.records)
    if (isDetached(record.branch))
      ++counts[record.branch - kCollectiveBranch];
  return counts;
}

uint32_t largestBranch(const Bucket &bucket) {
  uint32_t largest = 0;
  for (const LaunchRecord &record : bucket.records)
    if (!isDetached(record.branch))
      largest = std::max(largest, record.branch);
  return largest;
}

} // namespace cgc
