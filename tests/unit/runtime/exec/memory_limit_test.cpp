// Available host memory, and host buffers of extreme sizes.
#include "runtime/exec/buffer.h"
#include "runtime/exec/memory_limit.h"
#include "runtime/plan/plan.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sys/resource.h>

namespace cgc::test {
namespace {

class AvailableHostMemory : public testing::Test {
protected:
  void write(const std::string &path, const std::string &content) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    writeFile(file.string(), content);
  }
  uint64_t available() const { return availableHostMemory(folder_.path()); }

private:
  const TempFolder folder_;
};

TEST_F(AvailableHostMemory, IsThatOfTheSystem) {
  EXPECT_EQ(available(), UINT64_MAX);
  write("proc/meminfo", "MemTotal:  2000 kB\nMemFree:  100 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(available(), 1000u * 1024);
}

TEST_F(AvailableHostMemory, IsTheLeastOfAllGroupsAroundTheProcess) {
  write("proc/meminfo", "MemAvailable:    1000 kB\n");
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "400000\n");
  EXPECT_EQ(available(), 1000u * 1024);
  write("sys/fs/cgroup/outer/memory.max", "600000\n");
  write("sys/fs/cgroup/outer/memory.current", "500000\n");
  EXPECT_EQ(available(), 100'000u);
  // The kernel drops cached file pages under memory pressure.
  write("sys/fs/cgroup/outer/memory.stat", "anon 7\nactive_file 1000\ninactive_file 2000\n");
  EXPECT_EQ(available(), 103'000u);
  // The kernel does not count usage and cache at one moment.
  write("sys/fs/cgroup/outer/memory.stat", "active_file 400000\ninactive_file 200000\n");
  EXPECT_EQ(available(), 600'000u);
  write("sys/fs/cgroup/memory.max", "10\n"); // As in a container, where this is its own cgroup.
  write("sys/fs/cgroup/memory.current", "20\n");
  EXPECT_EQ(available(), 0u);
}

TEST_F(AvailableHostMemory, KnowsGroupsOfVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:cpu,memory:/a\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/a/memory.stat", "active_file 9\ntotal_active_file 500\n");
  EXPECT_EQ(available(), 2500u);
}

TEST_F(AvailableHostMemory, IsWhatTheLimitOfAddressesLeaves) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = rlim_t(1) << 52; // More than there are addresses: nothing fails by it.
  if (before.rlim_cur != RLIM_INFINITY)
    GTEST_SKIP() << "there is a limit already";
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const uint64_t left = available();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LT(left, uint64_t(1) << 52); // What the process has mapped does not count.
  EXPECT_GT(left, uint64_t(1) << 51);
}

TEST(HostBuffer, NoSizeWraps) {
  for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 254, UINT64_MAX - 255,
                               UINT64_MAX - 256, UINT64_MAX - 511})
    EXPECT_EQ(Buffer::allocate(DeviceKind::Cpu, bytes).status().code(), Code::OutOfMemory) << bytes;
}

TEST(HostBuffer, IsAlignedAndHoldsZeros) {
  for (const uint64_t bytes : {0, 1, 256, 100'000}) {
    const Result<Buffer> buffer = Buffer::allocate(DeviceKind::Cpu, bytes);
    ASSERT_TRUE(buffer.isOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u);
    EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + bytes,
                            [](std::byte b) { return b == std::byte{}; }));
  }
}

} // namespace
} // namespace cgc::test
