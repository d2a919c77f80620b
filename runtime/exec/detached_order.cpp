// detachedOrder: compares the memory of records of detached branches with that of all records.
#include "runtime/exec/detached_order.h"

#include "runtime/plan/record_accesses.h"

namespace cgc {

std::vector<DetachedWaits> detachedOrder(const Bucket &bucket) {
  if (detachedRecords(bucket) == DetachedCounts{})
    return {};
  std::vector<DetachedWaits> order;
  std::vector<RecordAccesses> all;
  std::array<std::vector<size_t>, kDetachedBranches> detached; // The records so far.
  size_t region = 0;                                           // Its first record.
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const uint32_t branch = bucket.records[i].branch;
    const RecordAccesses &own = all.emplace_back(bucket, bucket.records[i]);
    DetachedWaits &waits = order.emplace_back();
    for (uint32_t d = 0; d < kDetachedBranches; ++d) {
      uint32_t &count = waits.detached[d];
      if (branch != kCollectiveBranch + d)
        count = uint32_t(detached[d].size());
      while (count > 0 && !own.conflictsWith(all[detached[d][count - 1]]))
        --count;
    }
    if (isDetached(branch)) {
      for (size_t before = 0; before < i; ++before)
        if (const uint32_t other = bucket.records[before].branch;
            !isDetached(other) && own.conflictsWith(all[before]))
          waits.branches |= before < region ? 1u : 1u << other;
      detached[branch - kCollectiveBranch].push_back(i);
    } else if (branch == 0) {
      region = i + 1;
    }
  }
  return order;
}

} // namespace cgc
