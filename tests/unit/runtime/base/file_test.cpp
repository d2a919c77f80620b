// Files: mapping errors, and outputs that are either the old file or the complete new one.
#include "runtime/base/file.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {
/// Replaces fsync while it is set.
std::function<int(int)> onFsync;
} // namespace

/// Replaces the C library's fsync in this program, so that tests observe when it is called.
extern "C" int fsync(int fd) {
  return onFsync ? onFsync(fd) : fdatasync(fd);
}

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::span<const std::byte> bytesOf(std::string_view s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

TEST(Hash64, MatchesTheReferenceValues) {
  EXPECT_EQ(hash64({}), 0xef46db3751d8e999u);
  EXPECT_EQ(hash64(bytesOf("abc")), 0x44bc2cf5ad770999u);
}

TEST(MappedFile, GivesTheBytes) {
  const TempFolder folder;
  writeFile(folder / "a", "hello");
  Result<MappedFile> file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  const MappedFile moved = *std::move(file);
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(moved.bytes()[4]), 'o');
}

#if defined(__has_feature)
constexpr bool kHasSanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

/// Opens `path` with almost no address space left and exits this child process with the status
/// code.
[[noreturn]] void openWithoutAddresses(const std::string &path) {
  const rlimit few{256 << 20, 256 << 20};
  ::setrlimit(RLIMIT_AS, &few);
  const Status status = MappedFile::open(path).status();
  std::fputs(status.message().c_str(), stderr);
  std::_Exit(int(status.code()));
}

TEST(MappedFileDeathTest, WithoutAddressesIsOutOfMemory) {
  if (kHasSanitizer)
    GTEST_SKIP() << "a sanitizer takes more addresses than the limit";
  const TempFolder folder;
  const std::string path = folder / "large";
  writeFile(path, "");
  ASSERT_EQ(::truncate(path.c_str(), off_t(1) << 32), 0); // A sparse file.
  EXPECT_EXIT(openWithoutAddresses(path), testing::ExitedWithCode(int(Code::OutOfMemory)),
              "no addresses left for its 4294967296 bytes");
}

TEST(MappedFile, SaysWhyItCannotMap) {
  const TempFolder folder;
  writeFile(folder / "empty", "");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const std::pair<std::string, const char *> cases[] = {{folder / "missing", "does not exist"},
                                                        {folder / "empty", "is empty"},
                                                        {folder.path().string(), "is a directory"},
                                                        {folder / "fifo", "not a regular file"},
                                                        {"/dev/zero", "not a regular file"}};
  for (const auto &[path, message] : cases) {
    const Status status = MappedFile::open(path).status();
    EXPECT_EQ(status.code(), Code::InvalidFile) << path;
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

TEST(AtomicFile, ReplacesTheFileOnCommitOnly) {
  const TempFolder folder;
  writeFile(folder / "out", "old");
  Result<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.isOk()) << file.status().message();
  ASSERT_TRUE(file->write("new ", 4).isOk());
  ASSERT_TRUE(file->write("text", 4).isOk());
  EXPECT_EQ(file->position(), 8u);
  EXPECT_EQ(readFile(folder / "out"), "old");
  ASSERT_TRUE(file->commit().isOk());
  EXPECT_EQ(readFile(folder / "out"), "new text");
  EXPECT_THAT(folder.list(), ElementsAre("out"));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file.isOk());
    ASSERT_TRUE(file->write("half", 4).isOk());
    EXPECT_EQ(folder.list().size(), 1u);
    const AtomicFile moved = *std::move(file); // Moving must not remove it early or twice.
    EXPECT_EQ(folder.list().size(), 1u);
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(AtomicFile, TwoWritersOfOnePathDoNotMix) {
  const TempFolder folder;
  Result<AtomicFile> a = AtomicFile::create(folder / "out"), b = AtomicFile::create(folder / "out");
  ASSERT_TRUE(a.isOk() && b.isOk());
  ASSERT_TRUE(a->write("aaaa", 4).isOk() && b->write("bb", 2).isOk());
  ASSERT_TRUE(a->commit().isOk() && b->commit().isOk());
  EXPECT_EQ(readFile(folder / "out"), "bb");
  EXPECT_THAT(folder.list(), ElementsAre("out"));
}

TEST(AtomicFile, TheBytesReachTheDiskBeforeTheName) {
  const TempFolder folder;
  std::vector<std::string> synced;
  onFsync = [&](int fd) {
    struct stat info;
    EXPECT_EQ(::fstat(fd, &info), 0);
    synced.push_back(S_ISDIR(info.st_mode) ? "folder" : std::to_string(info.st_size) + " bytes");
    synced.back() += std::filesystem::exists(folder / "out") ? " after" : " before";
    return 0;
  };
  Result<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.isOk() && file->write("abc", 3).isOk() && file->commit().isOk());
  onFsync = nullptr;
  EXPECT_THAT(synced, ElementsAre("3 bytes before", "folder after"));
}

TEST(AtomicFile, AFailedSyncLeavesNothing) {
  const TempFolder folder;
  onFsync = [](int) {
    errno = EIO;
    return -1;
  };
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file.isOk());
    const Status status = file->commit();
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_THAT(status.message(), HasSubstr("cannot write '" + (folder / "out") + "'"));
  }
  onFsync = nullptr;
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(AtomicFile, RefusesTargetsThatAreNotFiles) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const std::pair<std::string, const char *> cases[] = {
      {folder.path().string(), "it is a directory"},
      {folder / "fifo", "not a regular file"},
      {folder / "no/such/out", "create it first"}};
  for (const auto &[path, message] : cases) {
    const Status status = AtomicFile::create(path).status();
    EXPECT_EQ(status.code(), Code::Failed) << path;
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
  EXPECT_THAT(folder.list(), ElementsAre("fifo"));
}

TEST(AtomicFile, WritesToTheTargetOfALink) {
  const TempFolder folder;
  writeFile(folder / "out", "old");
  std::filesystem::create_symlink("out", folder / "near");
  std::filesystem::create_symlink(folder / "near", folder / "far");
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "far");
    ASSERT_TRUE(file.isOk()) << file.status().message();
    ASSERT_TRUE(file->write("new", 3).isOk() && file->commit().isOk());
  }
  EXPECT_EQ(readFile(folder / "out"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "near"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "far"));
  EXPECT_THAT(folder.list(), ElementsAre("far", "near", "out"));
}

TEST(AtomicFile, RefusesADanglingLink) {
  const TempFolder folder;
  std::filesystem::create_symlink("nowhere", folder / "link");
  const Status status = AtomicFile::create(folder / "link").status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("it is a link to 'nowhere'"));
  EXPECT_THAT(folder.list(), ElementsAre("link"));
}

/// Like /dev/stdout when standard output is redirected to a file.
TEST(AtomicFile, ContinuesAtTheOffsetOfAnOpenDescriptor) {
  const TempFolder folder;
  const int fd = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "a", 1), 1);
  const std::string open = "/proc/self/fd/" + std::to_string(fd);
  std::filesystem::create_symlink(open, folder / "link");
  for (const std::string &path : {open, "/dev/fd/" + std::to_string(fd), folder / "link"}) {
    EXPECT_TRUE(isStream(path)) << path;
    Result<AtomicFile> file = AtomicFile::create(path);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    EXPECT_TRUE(file->write("bc", 2).isOk() && file->commit().isOk()) << path;
  }
  EXPECT_EQ(::write(fd, "d", 1), 1);
  ::close(fd);
  EXPECT_EQ(readFile(folder / "out"), "abcbcbcd");
  EXPECT_THAT(folder.list(), ElementsAre("link", "out"));
  EXPECT_FALSE(isStream(folder / "out"));
  EXPECT_FALSE(AtomicFile::create(open).isOk()) << "it is closed";
}

TEST(AtomicFile, RefusesADescriptorOfAnotherProcess) {
  const TempFolder folder;
  writeFile(folder / "out", "old");
  const int fd = ::open((folder / "out").c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  const std::string open =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd); // The parent's.
  const auto create = [&] {
    std::fputs(AtomicFile::create(open).status().message().c_str(), stderr);
    ::_exit(0);
  };
  EXPECT_EXIT(create(), testing::ExitedWithCode(0), "what another process has open");
  ::close(fd);
  EXPECT_EQ(readFile(folder / "out"), "old");
}

TEST(AtomicFile, WritesToCharacterDevices) {
  EXPECT_TRUE(isStream("/dev/null"));
  Result<AtomicFile> null = AtomicFile::create("/dev/null");
  ASSERT_TRUE(null.isOk()) << null.status().message();
  EXPECT_TRUE(null->write("abc", 3).isOk());
  EXPECT_EQ(null->position(), 3u);
  EXPECT_TRUE(null->commit().isOk());
  Result<AtomicFile> full = AtomicFile::create("/dev/full");
  ASSERT_TRUE(full.isOk()) << full.status().message();
  const Status status = full->write("abc", 3);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("cannot write '/dev/full'"));
}

TEST(AtomicFile, AHundredFilesMayBeOpenAtOnce) {
  const TempFolder folder;
  {
    std::vector<AtomicFile> open;
    for (int i = 0; i < 100; ++i) {
      Result<AtomicFile> file = AtomicFile::create(folder / std::to_string(i));
      ASSERT_TRUE(file.isOk()) << file.status().message();
      open.push_back(std::move(*file));
    }
    EXPECT_EQ(folder.list().size(), 100u);
  }
  EXPECT_TRUE(folder.list().empty());
}

TEST(AtomicFile, AbandonedFilesLeaveRoomForMore) {
  const TempFolder folder;
  for (int i = 0; i < 300; ++i) {
    Result<AtomicFile> file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file.isOk()) << "after " << i << " files: " << file.status().message();
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(AtomicFile, TakesTheLongestName) {
  const TempFolder folder;
  const std::string longest(NAME_MAX, 'n');
  Result<AtomicFile> file = AtomicFile::create(folder / longest);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_TRUE(file->write("abc", 3).isOk() && file->commit().isOk());
  EXPECT_THAT(folder.list(), ElementsAre(longest));
  EXPECT_EQ(AtomicFile::create(folder / (longest + "n")).status().code(), Code::Failed);
}

TEST(AtomicFile, RefusesAReadOnlyFolder) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may write to any folder";
  const TempFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0500), 0);
  const Status status = AtomicFile::create(folder / "out").status();
  EXPECT_THAT(status.message(), HasSubstr("Permission denied"));
  ::chmod(folder.path().c_str(), 0700);
}

/// Limits the size of files and restores the old limit. The limit emulates a full disk without
/// privileges.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  rlimit before_;
  void (*handler_)(int);
};

TEST(AtomicFile, ReportsAFailedWriteAndLeavesNoFile) {
  const TempFolder folder;
  {
    Result<AtomicFile> file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file.isOk());
    const FileSizeLimit limit(1000);
    const std::string block(600, 'x');
    EXPECT_TRUE(file->write(block.data(), block.size()).isOk());
    const Status status = file->write(block.data(), block.size());
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_THAT(status.message(), HasSubstr("cannot write '" + (folder / "out") + "'"));
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(AtomicFile, ASignalHandlerCanRemoveOpenFiles) {
  const TempFolder folder;
  const auto interrupted = [&] {
    std::signal(SIGTERM, [](int) {
      removeOpenTemporaries();
      ::_exit(7);
    });
    Result<AtomicFile> done = AtomicFile::create(folder / "done");
    Result<AtomicFile> open = AtomicFile::create(folder / "open");
    if (!done.isOk() || !open.isOk() || !done->write("x", 1).isOk() || !done->commit().isOk())
      ::_exit(1);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(7), "");
  EXPECT_THAT(folder.list(), ElementsAre("done"));
}

} // namespace
} // namespace cgc::test
