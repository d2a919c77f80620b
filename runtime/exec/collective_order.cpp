// CollectiveOrder: compares the memory of each collective with that of all records.
#include "runtime/exec/collective_order.h"

#include "runtime/plan/record_accesses.h"

#include <algorithm>

namespace cgc {
CollectiveOrder collectiveOrder(const Bucket &bucket) {
  const auto runsBeside = [](const LaunchRecord &record) {
    return record.branch == kCollectiveBranch;
  };
  if (std::ranges::none_of(bucket.records, runsBeside))
    return {};
  CollectiveOrder order;
  std::vector<RecordAccesses> all, collectives;
  size_t region = 0; // Its first record.
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const LaunchRecord &record = bucket.records[i];
    all.emplace_back(bucket, record);
    const RecordAccesses &own = all.back();
    uint32_t &waits = order.waits.emplace_back(0);
    if (runsBeside(record)) {
      for (size_t before = 0; before < i; ++before)
        if (!runsBeside(bucket.records[before]) && own.conflictsWith(all[before]))
          waits |= before < region ? 1u : 1u << bucket.records[before].branch;
      collectives.push_back(own);
      continue;
    }
    if (record.branch == 0)
      region = i + 1;
    for (size_t c = collectives.size(); c > 0 && waits == 0; --c)
      if (own.conflictsWith(collectives[c - 1]))
        waits = uint32_t(c);
  }
  return order;
}

} // namespace cgc
