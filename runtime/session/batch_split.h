// BatchSplit: chooses the buckets that run a batch of any size in the least time.
#pragma once

#include "runtime/exec/row_range.h"

#include <cstdint>
#include <vector>

namespace cgc {

/// A bucket that batches may be split into.
struct BatchBucket {
  size_t bucket = 0; ///< Its index in the entry.
  int64_t rows = 0;  ///< Its batch, at least 1.
  double micros = 0; ///< The time of one run; 0 if unknown.
};

/// Splits batches over the buckets of one entry that differ in the batch only. Immutable.
class BatchSplit final {
public:
  /// `buckets` is not empty. A batch has `maxRows` rows at most. A bucket whose time is less than
  /// that of a smaller bucket counts as if it took as long. If the time of a bucket is unknown,
  /// each run counts as one row more than its bucket has.
  BatchSplit(std::vector<BatchBucket> buckets, int64_t maxRows);

  int64_t maxRows() const { return int64_t(first_.size()); }
  /// The bucket of exactly `rows` rows; null if there is none.
  const BatchBucket *exact(int64_t rows) const;
  /// The smallest bucket of at least `rows` rows; null if there is none.
  const BatchBucket *smallest(int64_t rows) const;
  /// Replaces `runs` by the runs of a batch of `rows` rows, from 1 to maxRows(): one run of the
  /// bucket with exactly that batch, else those whose times have the least sum; of several such
  /// choices the one with the largest buckets first, none of them larger than smallest(). All rows
  /// of a bucket are in use except in the last run. Allocates nothing if `runs` has the capacity.
  void split(int64_t rows, std::vector<BucketRun> &runs) const;

private:
  std::vector<BatchBucket> buckets_; ///< By descending rows.
  std::vector<uint16_t> first_;      ///< For n + 1 rows, the index in buckets_ of the first run.
};

} // namespace cgc
