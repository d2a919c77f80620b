// scheduleDetached: simulates a run in which detached records wait for memory alone.
#include "backend/schedule_detached.h"

#include "runtime/plan/branches.h"
#include "runtime/plan/record_accesses.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace cgc::backend {

void scheduleDetached(Bucket &bucket, const RecordMicros &micros) {
  if (detachedRecords(bucket) == DetachedCounts{})
    return;
  std::vector<double> ends, places; // By record: when it ends, and by what it is sorted.
  std::vector<RecordAccesses> accesses;
  std::vector<size_t> detached;
  std::array<double, kMaxBranches + 1> branchEnds{}; // Up to now.
  for (const auto &[i, record] : llvm::enumerate(bucket.records)) {
    const RecordAccesses &own = accesses.emplace_back(bucket, record);
    double &end = ends.emplace_back(0);
    const auto follow = [&](size_t other) {
      if (ends[other] > end && own.conflictsWith(accesses[other]))
        end = ends[other];
    };
    if (isDetached(record.branch)) {
      for (size_t before = 0; before < i; ++before)
        follow(before);
      places.push_back(end);
      end += micros(record);
      detached.push_back(i);
      continue;
    }
    end = record.branch == 0 ? std::ranges::max(branchEnds) : branchEnds[record.branch];
    for (const size_t other : detached)
      follow(other);
    end += micros(record);
    places.push_back(end);
    if (record.branch == 0)
      branchEnds.fill(end);
    else
      branchEnds[record.branch] = end;
  }
  std::vector<size_t> order(bucket.records.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return places[a] < places[b]; });
  std::vector<LaunchRecord> sorted;
  for (const size_t i : order)
    sorted.push_back(std::move(bucket.records[i]));
  bucket.records = std::move(sorted);
}

} // namespace cgc::backend
