// Branches: finds the regions of a bucket.
#include "runtime/plan/branches.h"

#include <algorithm>

namespace cgc {

std::vector<ParallelRegion> parallelRegions(std::span<const LaunchRecord> records) {
  std::vector<ParallelRegion> regions;
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].branch == 0)
      continue;
    if (regions.empty() || regions.back().end < i)
      regions.push_back({i, i});
    regions.back().end = i + 1;
  }
  return regions;
}

uint32_t largestBranch(const Bucket &bucket) {
  uint32_t largest = 0;
  for (const LaunchRecord &record : bucket.records)
    largest = std::max(largest, record.branch);
  return largest;
}

} // namespace cgc
