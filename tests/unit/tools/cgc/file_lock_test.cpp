// FileLock: one holder at a time, and replaced files.
#include "tools/cgc/io/file_lock.h"

#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace cgc::tool {
namespace {

using test::TempFolder;
using testing::HasSubstr;

void write(const std::string &path, const std::string &text) {
  std::ofstream(path) << text;
}

TEST(FileLock, HasOneHolderAtATime) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  write(path, "1");
  {
    const auto held = FileLock::take(path);
    ASSERT_TRUE(held.isOk()) << held.status().message();
    const Status second = FileLock::take(path).status();
    EXPECT_EQ(second.code(), Code::Busy);
    EXPECT_THAT(second.message(), HasSubstr("plan'; try again"));
    EXPECT_TRUE(held->check().isOk());
  }
  EXPECT_TRUE(FileLock::take(path).isOk());
  EXPECT_EQ(FileLock::take(folder / "none").status().code(), Code::InvalidFile);
}

TEST(FileLock, SeesThatItsFileWasReplaced) {
  const TempFolder folder;
  const std::string path = folder / "plan";
  write(path, "1");
  const auto held = FileLock::take(path);
  ASSERT_TRUE(held.isOk());
  write(folder / "new", "2");
  std::filesystem::rename(folder / "new", path);
  EXPECT_EQ(held->check().code(), Code::Busy);
  EXPECT_TRUE(FileLock::take(path).isOk()); // It is another file.
  std::filesystem::remove(path);
  EXPECT_EQ(held->check().code(), Code::Busy);
}

/// Threads count to a number in a file, which each of them replaces under the lock.
TEST(FileLock, NoReplacementIsLost) {
  const TempFolder folder;
  const std::string path = folder / "count";
  write(path, "0");
  std::atomic<int> added = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        const auto lock = FileLock::take(path);
        if (!lock.isOk())
          continue;
        int count = 0;
        std::ifstream(path) >> count;
        const std::string next = folder / ("next" + std::to_string(thread));
        write(next, std::to_string(count + 1));
        std::filesystem::rename(next, path);
        ++added;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  int count = 0;
  std::ifstream(path) >> count;
  EXPECT_EQ(count, added);
  EXPECT_GT(count, 0);
}

} // namespace
} // namespace cgc::tool
