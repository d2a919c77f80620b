// Tests of the console: the exit statuses of docs/cli.md, sizes and tables.
#include "tools/cgc/cli/console.h"

#include "tests/temp_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

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

TEST(Console, StandardOutputIsKnownByAnyNameOfTheStream) {
  test::TempFolder folder;
  const int output = ::open((folder / "output").c_str(), O_WRONLY | O_CREAT, 0600);
  const int other = ::open((folder / "other").c_str(), O_WRONLY | O_CREAT, 0600);
  const int saved = ::dup(STDOUT_FILENO);
  ASSERT_EQ(::dup2(output, STDOUT_FILENO), STDOUT_FILENO);
  std::vector<bool> is;
  for (const std::string &path :
       {std::string("/dev/stdout"), "/dev/fd/" + std::to_string(output),
        "/dev/fd/" + std::to_string(other), std::string("/dev/null"), folder / "output"})
    is.push_back(isStandardOutput(path));
  ASSERT_EQ(::dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
  for (const int descriptor : {output, other, saved})
    ::close(descriptor);
  // The last is a file, which is replaced: what is printed goes to the one before.
  EXPECT_EQ(is, (std::vector<bool>{true, true, false, false, false}));
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
