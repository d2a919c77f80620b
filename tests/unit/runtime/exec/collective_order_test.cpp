// CollectiveOrder: what collectives wait for, and what waits for them.
#include "runtime/exec/collective_order.h"
#include "tests/unit/runtime/collective_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> waits(std::vector<LaunchRecord> records) {
  return collectiveOrder(bucketOf(std::move(records))).waits;
}

TEST(CollectiveOrder, IsEmptyWithoutCollectives) {
  EXPECT_THAT(waits({writes(0), copies(0, 1)}), IsEmpty());
  LaunchRecord inOrder = reduced(0, 0);
  inOrder.branch = 0;
  EXPECT_THAT(waits({writes(0), inOrder}), IsEmpty());
}

TEST(CollectiveOrder, ACollectiveFollowsTheBranchesThatUseItsMemory) {
  EXPECT_THAT(waits({writes(0), reduced(0, 0)}), ElementsAre(0, 1u));
  EXPECT_THAT(waits({writes(0, 1), writes(1, 2), writes(2, 3), reduced(1, 1)}),
              ElementsAre(0, 0, 0, 1u << 2));
  // What it overwrites has been read.
  EXPECT_THAT(waits({writes(0, 1), copies(3, 4, 2), reduced(0, 3)}),
              ElementsAre(0, 0, (1u << 1) | (1u << 2)));
  // Behind a barrier, branches are over.
  EXPECT_THAT(waits({writes(0, 2), writes(5), writes(1, 2), reduced(0, 0)}),
              ElementsAre(0, 0, 0, 1u));
  EXPECT_THAT(waits({writes(0, 2), reduced(1, 1)}), ElementsAre(0, 0));
}

TEST(CollectiveOrder, RecordsFollowTheLastCollectiveWhoseMemoryTheyUse) {
  EXPECT_THAT(waits({writes(0), reduced(0, 0), writes(1), reduced(1, 1), copies(0, 2), copies(1, 3),
                     writes(4), copies(4, 5)}),
              ElementsAre(0, 1, 0, 1, 1u, 2u, 0, 0));
  // Another record overwrites what the collective reads, or its result.
  EXPECT_THAT(waits({writes(0), reduced(0, 1), writes(0)}), ElementsAre(0, 1, 1u));
  EXPECT_THAT(waits({writes(0), reduced(0, 1), writes(1, 2)}), ElementsAre(0, 1, 1u));
  // Both read.
  EXPECT_THAT(waits({writes(0), reduced(0, 1), copies(0, 2)}), ElementsAre(0, 1, 0));
}

} // namespace
} // namespace cgc::test
