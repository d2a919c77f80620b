// Console: the exit statuses that docs/cli.md promises, sizes and tables.
#include "tools/cgc/cli/console.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

TEST(Console, ExitStatusesAreThoseOfTheManual) {
  EXPECT_EQ(exitStatus(Code::Ok), 0);
  EXPECT_EQ(exitStatus(Code::Failed), 1);
  EXPECT_EQ(exitStatus(Code::Usage), 2);
  EXPECT_EQ(exitStatus(Code::InvalidFile), 3);
  EXPECT_EQ(exitStatus(Code::Unsupported), 4);
  EXPECT_EQ(exitStatus(Code::Mismatch), 5);
  EXPECT_EQ(exitStatus(Code::Device), 6);
  EXPECT_EQ(exitStatus(Code::OutOfMemory), 7);
}

TEST(Console, SizesAreInPowersOfAThousand) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(999), "999 B");
  EXPECT_EQ(formatBytes(1000), "1.0 kB");
  EXPECT_EQ(formatBytes(1'250'000), "1.2 MB");
  EXPECT_EQ(formatBytes(42'900'000'000), "42.9 GB");
  EXPECT_EQ(formatBytes(3'000'000'000'000'000), "3000.0 TB");
}

TEST(Console, ColumnsOfATableAreAligned) {
  EXPECT_EQ(formatTable({{"a", "bb"}, {"ccc", "d"}}), "a    bb\nccc  d\n");
}

} // namespace
} // namespace cgc::tool
