// BatchSplit: which buckets run a batch.
#include "runtime/session/batch_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cgc::test {
namespace {

using testing::ElementsAre;

/// Buckets with a fixed cost of 10 for each run, and 1 for each row.
BatchSplit splitOf(const std::vector<int64_t> &batches, int64_t maxRows = 300) {
  std::vector<BatchBucket> buckets;
  for (size_t i = 0; i < batches.size(); ++i)
    buckets.push_back({i, batches[i], 10.0 + double(batches[i])});
  return {buckets, maxRows};
}

/// The batches of the buckets that run `rows` rows.
std::vector<int64_t> batchesFor(const BatchSplit &split, const std::vector<int64_t> &batches,
                                int64_t rows) {
  std::vector<BucketRun> runs;
  split.split(rows, runs);
  std::vector<int64_t> chosen;
  for (const BucketRun &run : runs)
    chosen.push_back(batches[run.bucket]);
  return chosen;
}

TEST(BatchSplit, TakesTheExactBucketElsePadsElseSplits) {
  const std::vector<int64_t> batches = {4, 1, 64, 16};
  const BatchSplit split = splitOf(batches);
  EXPECT_THAT(batchesFor(split, batches, 1), ElementsAre(1));
  EXPECT_THAT(batchesFor(split, batches, 3), ElementsAre(4));
  EXPECT_THAT(batchesFor(split, batches, 16), ElementsAre(16));
  EXPECT_THAT(batchesFor(split, batches, 17), ElementsAre(16, 1));
  EXPECT_THAT(batchesFor(split, batches, 40), ElementsAre(64));
  EXPECT_THAT(batchesFor(split, batches, 100), ElementsAre(64, 16, 16, 4));
  EXPECT_THAT(batchesFor(split, batches, 200), ElementsAre(64, 64, 64, 16));
}

TEST(BatchSplit, TakesTheExactBucketEvenIfItIsSlow) {
  const BatchSplit split({{0, 1, 1}, {1, 2, 100}}, 8);
  std::vector<BucketRun> runs;
  split.split(2, runs);
  EXPECT_THAT(runs, ElementsAre(BucketRun{1, RowRange{0, 2, 2}}));
}

TEST(BatchSplit, FollowsTheTimesOfBuckets) {
  std::vector<BucketRun> runs;
  BatchSplit({{0, 1, 1}, {1, 8, 7}}, 8).split(6, runs); // Six single rows take less.
  EXPECT_EQ(runs.size(), 6u);
  BatchSplit({{0, 1, 1}, {1, 8, 5}}, 8).split(6, runs);
  EXPECT_THAT(runs, ElementsAre(BucketRun{1, RowRange{0, 6, 6}}));
  // Of two choices that take the same time, the larger bucket comes first.
  BatchSplit({{0, 1, 1}, {1, 2, 2}}, 8).split(3, runs);
  EXPECT_THAT(runs, ElementsAre(BucketRun{1, RowRange{0, 2, 3}}, BucketRun{0, RowRange{2, 1, 3}}));
}

TEST(BatchSplit, PadsToTheSmallestBucketIfTimesFall) {
  std::vector<BucketRun> runs;
  const BatchSplit split({{0, 1, 9}, {1, 4, 10}, {2, 16, 8}}, 20);
  split.split(2, runs);
  EXPECT_THAT(runs, ElementsAre(BucketRun{1, RowRange{0, 2, 2}}));
  // 16 rows count as 10, and so do 4.
  split.split(5, runs);
  EXPECT_THAT(runs, ElementsAre(BucketRun{2, RowRange{0, 5, 5}}));
  split.split(18, runs);
  EXPECT_THAT(runs,
              ElementsAre(BucketRun{2, RowRange{0, 16, 18}}, BucketRun{1, RowRange{16, 2, 18}}));
  // A time that falls does not make single rows look slow: three of them take less than 11.
  BatchSplit({{0, 1, 3}, {1, 4, 11}, {2, 16, 8}}, 16).split(3, runs);
  EXPECT_EQ(runs.size(), 3u);
}

TEST(BatchSplit, CountsRowsIfATimeIsUnknown) {
  const BatchSplit split({{0, 1, 0}, {1, 4, 100}}, 8);
  std::vector<BucketRun> runs;
  split.split(3, runs); // 5 against 3 * 2.
  EXPECT_THAT(runs, ElementsAre(BucketRun{1, RowRange{0, 3, 3}}));
}

/// The sum of the times is the least of all choices, by trying all of them.
TEST(BatchSplit, IsOptimal) {
  const std::vector<BatchBucket> buckets = {{0, 2, 3}, {1, 5, 6.5}, {2, 7, 8.5}};
  const BatchSplit split(buckets, 40);
  std::vector<double> best(41, 0);
  std::vector<BucketRun> runs;
  for (int64_t rows = 1; rows <= 40; ++rows) {
    best[rows] = 1e9;
    for (const BatchBucket &bucket : buckets)
      best[rows] =
          std::min(best[rows], bucket.micros + best[std::max<int64_t>(0, rows - bucket.rows)]);
    split.split(rows, runs);
    double time = 0;
    for (const BucketRun &run : runs)
      time += buckets[run.bucket].micros;
    EXPECT_TRUE(split.exact(rows) || std::abs(time - best[rows]) < 1e-6) << rows;
  }
}

TEST(BatchSplit, CoversEachRowOnce) {
  const std::vector<int64_t> batches = {1, 4, 16, 64};
  for (const std::vector<int64_t> &some : {batches, {3, 8}, {5}}) {
    const BatchSplit split = splitOf(some);
    EXPECT_EQ(split.maxRows(), 300);
    std::vector<BucketRun> runs;
    for (int64_t rows = 1; rows <= split.maxRows(); ++rows) {
      split.split(rows, runs);
      int64_t begin = 0;
      for (const BucketRun &run : runs) {
        EXPECT_EQ(run.rows->total, rows);
        EXPECT_EQ(run.rows->begin, begin);
        EXPECT_GE(run.rows->count, 1);
        EXPECT_LE(run.rows->count, some[run.bucket]);
        begin += run.rows->count;
        EXPECT_TRUE(begin == rows || run.rows->count == some[run.bucket]);
      }
      EXPECT_EQ(begin, rows);
    }
  }
}

} // namespace
} // namespace cgc::test
