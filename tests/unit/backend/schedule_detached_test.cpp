// Tests of scheduleDetached: which records change places, and which keep theirs.
#include "backend/schedule_detached.h"

#include "tests/unit/runtime/detached_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;
using namespace cgc::test;

/// The tensor that each record writes, in their new order. A record takes as many microseconds as
/// the tensor that it writes has in `micros`, or one.
std::vector<uint32_t> scheduled(std::vector<LaunchRecord> records,
                                const std::map<uint32_t, double> &micros = {}) {
  const auto written = [](const LaunchRecord &record) { return uint32_t(recordWrites(record)[0]); };
  Bucket bucket = bucketOf(std::move(records));
  scheduleDetached(bucket, [&](const LaunchRecord &record) {
    const auto known = micros.find(written(record));
    return known == micros.end() ? 1 : known->second;
  });
  std::vector<uint32_t> order;
  for (const LaunchRecord &record : bucket.records)
    order.push_back(written(record));
  return order;
}

TEST(ScheduleDetached, LeavesOtherBucketsAlone) {
  EXPECT_THAT(scheduled({writes(0, 2), writes(1, 2), writes(2, 1)}), ElementsAre(0, 1, 2));
}

TEST(ScheduleDetached, TheOneWithTheFirstOperandsComesFirst) {
  // Both records of branch 2 are listed before those of branch 1, and end after the first of them.
  EXPECT_THAT(
      scheduled({writes(0, 2), reduced(0, 0), writes(1, 1), reduced(1, 1), writes(2, 1)}, {{0, 5}}),
      ElementsAre(1, 1, 2, 0, 0));
  EXPECT_THAT(
      scheduled({writes(0, 2), reduced(0, 0), writes(1, 1), reduced(1, 1), writes(2, 1)}, {{1, 5}}),
      ElementsAre(0, 0, 1, 1, 2));
}

TEST(ScheduleDetached, RecordsOfABranchAndBarriersKeepTheirOrder) {
  EXPECT_THAT(
      scheduled({writes(0, 1), writes(1, 2), writes(2), writes(3, 1), reduced(1, 1), writes(4, 2)},
                {{0, 9}, {3, 3}}),
      ElementsAre(1, 1, 0, 2, 4, 3));
}

TEST(ScheduleDetached, UpdatesFollowTheirCollectives) {
  // Listed in the order of the branches; the second one's operand is there first.
  EXPECT_THAT(scheduled({writes(0, 2), reduced(0, 0), writes(1, 1), reduced(1, 1), writes(4, 1),
                         copies(0, 2, kUpdateBranch), copies(1, 3, kUpdateBranch)},
                        {{0, 5}, {2, 9}}),
              ElementsAre(1, 1, 4, 3, 0, 0, 2));
  // One that takes what the other writes stays behind it, and so does a collective.
  EXPECT_THAT(scheduled({writes(0, 2), reduced(0, 0), writes(1, 1), copies(0, 2, kUpdateBranch),
                         copies(2, 3, kUpdateBranch), reduced(3, 3), writes(4, 1)},
                        {{1, 2.5}, {2, 2}, {3, 2}}),
              ElementsAre(0, 0, 2, 1, 4, 3, 3));
  // It overwrites what a branch reads late.
  EXPECT_THAT(scheduled({writes(0, 2), reduced(0, 0), copies(3, 4, 1), copies(0, 3, kUpdateBranch)},
                        {{4, 9}}),
              ElementsAre(0, 0, 4, 3));
}

TEST(ScheduleDetached, WhatUsesItsMemoryKeepsItsSide) {
  // A reader of the result in a branch that is early, and one that has read what is overwritten.
  EXPECT_THAT(scheduled({writes(0, 2), reduced(0, 1), copies(1, 2, 1)}, {{0, 9}}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(scheduled({writes(0, 1), copies(3, 4, 2), reduced(0, 3)}, {{4, 9}}),
              ElementsAre(0, 4, 3));
  // Without time, nothing moves.
  EXPECT_THAT(
      scheduled({writes(0, 2), reduced(0, 0), copies(0, 1, 2), reduced(1, 1)}, {{0, 0}, {1, 0}}),
      ElementsAre(0, 0, 1, 1));
}

} // namespace
} // namespace cgc::backend
