// scheduleCollectives: simulates a run in which collectives take no time.
#include "backend/schedule_collectives.h"

#include "runtime/plan/branches.h"
#include "runtime/plan/record_accesses.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace cgc::backend {
namespace {

/// Sorts neighbors of branch 0 that use no common memory by the collectives that they wait for, so
/// that none waits for one behind the next one's. `accesses` are those of the records.
void sortReaders(Bucket &bucket, std::vector<RecordAccesses> accesses) {
  std::vector<RecordAccesses> collectives;
  std::vector<size_t> waits;
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const RecordAccesses &own = accesses[i];
    size_t wait = collectives.size();
    while (wait > 0 && !own.conflictsWith(collectives[wait - 1]))
      --wait;
    if (bucket.records[i].branch == kCollectiveBranch)
      collectives.push_back(own);
    for (size_t at = i; at > 0 && bucket.records[at - 1].branch == 0; --at)
      if (accesses[at - 1].conflictsWith(own))
        wait = std::max(wait, waits[at - 1]);
    waits.push_back(wait);
    for (size_t at = i;
         at > 0 && bucket.records[at].branch == 0 && bucket.records[at - 1].branch == 0 &&
         waits[at - 1] > wait && !accesses[at - 1].conflictsWith(accesses[at]);
         --at) {
      std::swap(bucket.records[at - 1], bucket.records[at]);
      std::swap(accesses[at - 1], accesses[at]);
      std::swap(waits[at - 1], waits[at]);
    }
  }
}

} // namespace

void scheduleCollectives(Bucket &bucket, const RecordMicros &micros) {
  if (collectivesBeside(bucket) == 0)
    return;
  std::vector<double> ends;
  std::vector<RecordAccesses> accesses;
  std::vector<size_t> collectives;
  std::array<double, kMaxBranches + 1> branchEnds{}; // Up to now.
  for (const auto &[i, record] : llvm::enumerate(bucket.records)) {
    const RecordAccesses &own = accesses.emplace_back(bucket, record);
    double &end = ends.emplace_back(0);
    const auto follow = [&](size_t other) {
      if (ends[other] > end && own.conflictsWith(accesses[other]))
        end = ends[other];
    };
    if (record.branch == kCollectiveBranch) {
      for (size_t before = 0; before < i; ++before)
        follow(before);
      collectives.push_back(i);
      continue;
    }
    end = record.branch == 0 ? std::ranges::max(branchEnds) : branchEnds[record.branch];
    for (const size_t collective : collectives)
      follow(collective);
    end += micros(record);
    if (record.branch == 0)
      branchEnds.fill(end);
    else
      branchEnds[record.branch] = end;
  }
  std::vector<size_t> order(bucket.records.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return ends[a] < ends[b]; });
  std::vector<LaunchRecord> sorted;
  std::vector<RecordAccesses> sortedAccesses;
  for (const size_t i : order) {
    sorted.push_back(std::move(bucket.records[i]));
    sortedAccesses.push_back(std::move(accesses[i]));
  }
  bucket.records = std::move(sorted);
  sortReaders(bucket, std::move(sortedAccesses));
}

} // namespace cgc::backend
