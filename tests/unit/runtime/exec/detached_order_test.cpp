// detachedOrder: what records of detached branches wait for, and what waits for them.
#include "runtime/exec/detached_order.h"
#include "tests/unit/runtime/detached_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<DetachedWaits> waits(std::vector<LaunchRecord> records) {
  return detachedOrder(bucketOf(std::move(records)));
}
/// The waits of a record: branches as bits, collectives and updates.
DetachedWaits on(uint32_t branches, uint32_t collectives = 0, uint32_t updates = 0) {
  return {branches, {collectives, updates}};
}
const DetachedWaits kNothing;

TEST(DetachedOrder, IsEmptyWithoutDetachedBranches) {
  EXPECT_THAT(waits({writes(0), copies(0, 1)}), IsEmpty());
  LaunchRecord inOrder = reduced(0, 0);
  inOrder.branch = 0;
  EXPECT_THAT(waits({writes(0), inOrder}), IsEmpty());
}

TEST(DetachedOrder, ARecordFollowsTheBranchesThatUseItsMemory) {
  EXPECT_THAT(waits({writes(0), reduced(0, 0)}), ElementsAre(kNothing, on(1)));
  EXPECT_THAT(waits({writes(0, 1), writes(1, 2), writes(2, 3), reduced(1, 1)}),
              ElementsAre(kNothing, kNothing, kNothing, on(1u << 2)));
  // What it overwrites has been read.
  EXPECT_THAT(waits({writes(0, 1), copies(3, 4, 2), reduced(0, 3)}),
              ElementsAre(kNothing, kNothing, on((1u << 1) | (1u << 2))));
  EXPECT_THAT(waits({copies(3, 4, 2), copies(0, 3, kUpdateBranch)}),
              ElementsAre(kNothing, on(1u << 2)));
  // Behind a barrier, branches are over.
  EXPECT_THAT(waits({writes(0, 2), writes(5), writes(1, 2), reduced(0, 0)}),
              ElementsAre(kNothing, kNothing, kNothing, on(1)));
  EXPECT_THAT(waits({writes(0, 2), reduced(1, 1)}), ElementsAre(kNothing, kNothing));
}

TEST(DetachedOrder, RecordsFollowTheLastCollectiveWhoseMemoryTheyUse) {
  EXPECT_THAT(
      waits({writes(0), reduced(0, 0), writes(1), reduced(1, 1), copies(0, 2), copies(1, 3),
             writes(4), copies(4, 5)}),
      ElementsAre(kNothing, on(1), kNothing, on(1), on(0, 1), on(0, 2), kNothing, kNothing));
  // Another record overwrites what the collective reads, or its result.
  EXPECT_THAT(waits({writes(0), reduced(0, 1), writes(0)}), ElementsAre(kNothing, on(1), on(0, 1)));
  EXPECT_THAT(waits({writes(0), reduced(0, 1), writes(1, 2)}),
              ElementsAre(kNothing, on(1), on(0, 1)));
  // Both read.
  EXPECT_THAT(waits({writes(0), reduced(0, 1), copies(0, 2)}),
              ElementsAre(kNothing, on(1), kNothing));
}

TEST(DetachedOrder, DetachedBranchesFollowEachOther) {
  // The update of what the second collective gives, a broadcast of it, and readers.
  EXPECT_THAT(waits({writes(0), reduced(0, 0), reduced(1, 1), copies(1, 2, kUpdateBranch),
                     reduced(2, 2), copies(0, 3, kUpdateBranch), copies(2, 4), copies(3, 5)}),
              ElementsAre(kNothing, on(1), kNothing, on(0, 2), on(0, 0, 1), on(1, 1), on(0, 3, 1),
                          on(0, 0, 2)));
}

} // namespace
} // namespace cgc::test
