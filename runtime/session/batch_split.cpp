// BatchSplit: dynamic programming over the number of rows.
#include "runtime/session/batch_split.h"

#include <algorithm>
#include <cassert>
#include <ranges>

namespace cgc {
namespace {

/// Sums of the same times in another order differ by rounding. They count as equal.
constexpr double kLess = 1 - 1e-9;

} // namespace

BatchSplit::BatchSplit(std::vector<BatchBucket> buckets, int64_t maxRows)
    : buckets_(std::move(buckets)) {
  assert(!buckets_.empty() && maxRows > 0);
  std::ranges::stable_sort(buckets_, std::greater(), &BatchBucket::rows);
  const bool timesKnown =
      std::ranges::all_of(buckets_, [](const BatchBucket &bucket) { return bucket.micros > 0; });
  // More rows never take less: an estimate that falls is wrong, and a measured time then is noise.
  double least = 0;
  for (BatchBucket &bucket : std::views::reverse(buckets_))
    least = bucket.micros = std::max(bucket.micros, least);
  // cost[n] is the least time of n rows: that of a first run and of the rows that it leaves.
  std::vector<double> cost(maxRows + 1, 0);
  first_.resize(maxRows);
  size_t smallest = buckets_.size() - 1; // That takes all rows, if one does.
  for (int64_t rows = 1; rows <= maxRows; ++rows) {
    while (smallest > 0 && buckets_[smallest].rows < rows)
      --smallest;
    const auto costOf = [&](const BatchBucket &bucket) {
      return (timesKnown ? bucket.micros : double(bucket.rows) + 1) +
             cost[std::max<int64_t>(0, rows - bucket.rows)];
    };
    // Of two buckets that take all rows, the smaller one is not slower and pads less.
    size_t best = smallest;
    if (buckets_[smallest].rows != rows)
      for (size_t i = smallest + 1; i < buckets_.size(); ++i)
        if (costOf(buckets_[i]) < costOf(buckets_[best]) * kLess)
          best = i;
    cost[rows] = costOf(buckets_[best]);
    first_[rows - 1] = uint16_t(best);
  }
}

const BatchBucket *BatchSplit::exact(int64_t rows) const {
  const auto found = std::ranges::find(buckets_, rows, &BatchBucket::rows);
  return found == buckets_.end() ? nullptr : &*found;
}

const BatchBucket *BatchSplit::smallest(int64_t rows) const {
  const BatchBucket *smallest = nullptr;
  for (const BatchBucket &bucket : buckets_) // By descending rows.
    if (bucket.rows >= rows)
      smallest = &bucket;
  return smallest;
}

void BatchSplit::split(int64_t rows, std::vector<BucketRun> &runs) const {
  assert(rows > 0 && rows <= maxRows());
  runs.clear();
  for (int64_t begin = 0; begin < rows;) {
    const BatchBucket &bucket = buckets_[first_[rows - begin - 1]];
    const int64_t count = std::min(bucket.rows, rows - begin);
    runs.push_back({bucket.bucket, RowRange{begin, count, rows}});
    begin += count;
  }
}

} // namespace cgc
