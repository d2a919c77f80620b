// BatchCurve: times between batches, and the fewest batches that keep padding cheap.
#include "driver/batch_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

namespace cgc::driver {
namespace {

using ::testing::ElementsAre;

TEST(BatchCurve, IsLinearBetweenBatches) {
  const BatchCurve curve{{2, 4, 8}, {10, 20, 28}};
  EXPECT_EQ(curve.at(1), 10);
  EXPECT_EQ(curve.at(2), 10);
  EXPECT_EQ(curve.at(3), 15);
  EXPECT_EQ(curve.at(4), 20);
  EXPECT_EQ(curve.at(7), 26);
  EXPECT_EQ(curve.at(9), 28);
}

TEST(BatchCurve, SamplesEndWithTheLargestBatch) {
  EXPECT_THAT(sampledBatches(1), ElementsAre(1));
  EXPECT_THAT(sampledBatches(2), ElementsAre(1, 2));
  EXPECT_THAT(sampledBatches(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(sampledBatches(24), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 24));
  EXPECT_THAT(sampledBatches(25), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 24, 25));
}

/// The times 1, 2, ... n.
BatchCurve proportional(int64_t most) {
  BatchCurve curve;
  for (int64_t batch = 1; batch <= most; ++batch) {
    curve.batches.push_back(batch);
    curve.micros.push_back(static_cast<double>(batch));
  }
  return curve;
}

TEST(ChooseBatches, OneOfConstantTimeAndAllWithoutWaste) {
  EXPECT_THAT(chooseBatches(BatchCurve{{1, 64}, {5, 5}}, 64, 0), ElementsAre(64));
  EXPECT_THAT(chooseBatches(proportional(4), 4, 0), ElementsAre(1, 2, 3, 4));
}

TEST(ChooseBatches, WasteIsAPartOfABatchsOwnTime) {
  // 6 rows may take as long as 9, and 4 no longer than 6.
  EXPECT_THAT(chooseBatches(proportional(9), 9, 0.5), ElementsAre(1, 3, 5, 9));
}

TEST(ChooseBatches, EveryEntryKeepsToIt) {
  const BatchCurve flat{{1, 8}, {5, 5}}, steep{{1, 4, 5, 8}, {1, 1, 9, 9}};
  EXPECT_THAT(chooseBatches({flat, steep}, 8, 0.1), ElementsAre(4, 8));
  EXPECT_THAT(chooseBatches({steep, flat}, 8, 0.1), ElementsAre(4, 8));
}

/// The fewest batches by trying all sets.
size_t fewest(const BatchCurve &curve, int64_t most, double waste) {
  size_t best = most;
  for (uint32_t set = 0; set < (1u << most); ++set) {
    int64_t chosen = 0;
    bool suffices = true;
    for (int64_t batch = most; batch > 0; --batch) {
      if (set >> (batch - 1) & 1)
        chosen = batch;
      suffices &= chosen > 0 && curve.at(chosen) <= (1 + waste) * curve.at(batch);
    }
    if (suffices)
      best = std::min<size_t>(best, std::popcount(set));
  }
  return best;
}

TEST(ChooseBatches, ThereAreNoFewer) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> step(0, 2);
  for (int i = 0; i < 50; ++i) {
    BatchCurve curve = proportional(10);
    double micros = 1;
    for (double &value : curve.micros)
      value = micros += step(random);
    const double waste = step(random) / 4;
    EXPECT_EQ(chooseBatches(curve, 10, waste).size(), fewest(curve, 10, waste)) << i;
  }
}

} // namespace
} // namespace cgc::driver
