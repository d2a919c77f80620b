// Rendezvous: the exchange of an id among threads and processes, files of earlier runs, and ranks
// that do not come, differ or die.
#include "tools/cgc/train/rendezvous.h"

#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::tool {
namespace {

using std::chrono::milliseconds;
using test::TempFolder;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kLong{20000}, kShort{200};

/// An id that names the run.
Result<CommunicatorId> idOf(int run) {
  CommunicatorId id = {};
  id[0] = std::byte(run);
  id[127] = std::byte(0xf0 + run);
  return id;
}

TEST(CommunicatorIds, AreHexadecimalDigits) {
  std::string digits = "0a" + std::string(252, '0') + "fF";
  CommunicatorId id = {};
  id[0] = std::byte(0x0a);
  id[127] = std::byte(0xff);
  EXPECT_EQ(parseId(digits), id);
  EXPECT_EQ(parseId(digits + "00"), std::nullopt);
  EXPECT_EQ(parseId(digits.substr(2)), std::nullopt);
  for (const char *wrong : {"0g", "-1", " 1", "1 "})
    EXPECT_EQ(parseId(digits.replace(100, 2, wrong)), std::nullopt) << wrong;
}

using Joined = Result<std::unique_ptr<Rendezvous>>;
Joined join(const TempFolder &folder, int rank, int ranks, milliseconds timeout = kLong,
            const Result<CommunicatorId> &id = idOf(1)) {
  return Rendezvous::join(
      {.folder = folder.path(), .rank = rank, .ranks = ranks, .timeout = timeout},
      [&] { return id; });
}
/// Joins all ranks in threads.
std::vector<Joined> joinAll(int ranks, const std::function<Joined(int)> &joinRank) {
  std::vector<std::optional<Joined>> joined(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { joined[rank] = joinRank(rank); });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<Joined> results;
  for (auto &result : joined)
    results.push_back(*std::move(result));
  return results;
}
std::vector<std::string> messages(const std::vector<Joined> &joined) {
  std::vector<std::string> texts;
  for (const Joined &result : joined)
    texts.push_back(result.status().message());
  return texts;
}

void writeRequest(const TempFolder &folder, int rank, int ranks, const std::string &nonce) {
  test::writeFile(folder / ("rank-" + std::to_string(rank)),
                  "cgc-request-1\n" + std::to_string(ranks) + "\n" + nonce + "\nold, process 1\n");
}

TEST(Rendezvous, GivesAllRanksTheIdOfRank0AndLeavesNoFiles) {
  for (const int ranks : {2, 3, 8}) {
    const TempFolder folder;
    {
      const std::vector<Joined> joined = joinAll(
          ranks, [&](int rank) { return join(folder, rank, ranks, kLong, idOf(rank + 1)); });
      ASSERT_THAT(messages(joined), Each(""));
      for (const Joined &result : joined)
        EXPECT_EQ((*result)->id(), *idOf(1));
      EXPECT_EQ(folder.list().size(), size_t(ranks)); // The signs of life.
    }
    EXPECT_THAT(folder.list(), IsEmpty());
  }
}

TEST(Rendezvous, OneRankNeedsNoFolder) {
  const Joined joined = Rendezvous::join({}, [] { return idOf(1); });
  ASSERT_TRUE(joined.isOk());
  EXPECT_EQ((*joined)->id(), *idOf(1));
  EXPECT_EQ((*joined)->explain({Code::Failed, "failure"}).message(), "failure");
}

TEST(Rendezvous, FilesOfAnEarlierRunAreNotTakenForThoseOfThisOne) {
  const TempFolder folder;
  // A run whose ranks 1 and 2 were killed while they waited, and its id.
  writeRequest(folder, 1, 3, "old1");
  writeRequest(folder, 2, 3, "old2");
  test::writeFile(folder / "id", "cgc-id-1\nid 00\n0 old0\n1 old1\n2 old2\n");
  test::writeFile(folder / "alive-2", "old2\n");
  test::writeFile(folder / "rank-x", "no request");
  const std::vector<Joined> joined = joinAll(3, [&](int rank) {
    if (rank == 2) // Rank 0 has published an id for the old request by now.
      std::this_thread::sleep_for(milliseconds(100));
    return join(folder, rank, 3);
  });
  ASSERT_THAT(messages(joined), Each(""));
  for (const Joined &result : joined)
    EXPECT_EQ((*result)->id(), *idOf(1));
}

TEST(Rendezvous, FilesThatAreNoRequestsAreIgnored) {
  const TempFolder folder;
  test::writeFile(folder / "rank-1", "cgc-request-1\nmany\n");
  test::writeFile(folder / "rank-99999999999", "x");
  test::writeFile(folder / "id", std::string("\0\xff", 2));
  EXPECT_THAT(messages(joinAll(2, [&](int rank) { return join(folder, rank, 2); })), Each(""));
}

TEST(Rendezvous, NamesTheRanksThatDoNotCome) {
  const TempFolder folder;
  // All but ranks 2 and 3.
  const std::vector<Joined> joined = joinAll(
      3, [&](int i) { return join(folder, i == 2 ? 4 : i, 5, i == 0 ? kShort : 2 * kShort); });
  // Rank 0 tells the others when it gives up.
  for (const Joined &result : joined) {
    EXPECT_EQ(result.status().code(), Code::Failed);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("rank 0 waited 0.2 s: ranks 2-3 of 5 have not come"),
                      HasSubstr(folder.path().string())));
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(Rendezvous, NamesRank0IfThatDoesNotCome) {
  const TempFolder folder;
  EXPECT_THAT(messages(joinAll(2, [&](int i) { return join(folder, i + 1, 3, kShort); })),
              Each(HasSubstr("rank 0 of 3 has not come")));
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(Rendezvous, ARequestOfADeadProcessIsNotARank) {
  const TempFolder folder;
  writeRequest(folder, 1, 2, "old1");
  EXPECT_THAT(join(folder, 0, 2, kShort).status().message(), HasSubstr("rank 1 of 2 has not come"));
  writeRequest(folder, 1, 4, "old1"); // Nor is one of another number of ranks.
  EXPECT_THAT(join(folder, 0, 2, kShort).status().message(), HasSubstr("rank 1 of 2 has not come"));
}

TEST(Rendezvous, NamesARankOfAnotherNumberOfRanks) {
  const TempFolder folder;
  const std::vector<Joined> joined =
      joinAll(3, [&](int rank) { return join(folder, rank, rank == 2 ? 4 : 3); });
  for (const Joined &result : joined) {
    EXPECT_EQ(result.status().code(), Code::Usage);
    EXPECT_THAT(result.status().message(),
                AllOf(HasSubstr("rank 2 ("), HasSubstr("was started for 4 ranks, and rank 0 for 3"),
                      HasSubstr("process " + std::to_string(getpid()))));
  }
}

TEST(Rendezvous, TwoProcessesAreNotOneRank) {
  const TempFolder folder;
  for (const int rank : {0, 1}) {
    const std::vector<Joined> joined =
        joinAll(2, [&](int) { return join(folder, rank, 3, 2 * kShort); });
    EXPECT_THAT(messages(joined),
                testing::Contains(AllOf(HasSubstr("two processes are rank " + std::to_string(rank)),
                                        HasSubstr("a folder of its own"))));
  }
}

TEST(Rendezvous, AFailureOfRank0IsThatOfAll) {
  const TempFolder folder;
  const std::vector<Joined> joined = joinAll(
      3, [&](int rank) { return join(folder, rank, 3, kLong, Status(Code::Device, "no\nNCCL")); });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(joined[rank].status().code(), Code::Device);
    EXPECT_THAT(joined[rank].status().message(), HasSubstr(rank == 0 ? "no\nNCCL" : "no\\x0aNCCL"));
  }
  EXPECT_THAT(folder.list(), IsEmpty());
}

TEST(Rendezvous, RefusesWhatIsOutOfRangeOrNotWritable) {
  const TempFolder folder;
  EXPECT_EQ(join(folder, 2, 2).status().code(), Code::Usage);
  EXPECT_EQ(join(folder, -1, 2).status().code(), Code::Usage);
  EXPECT_EQ(join(folder, 0, 0).status().code(), Code::Usage);
  EXPECT_EQ(join(folder, 0, 2, milliseconds(0)).status().code(), Code::Usage);
  EXPECT_THAT(Rendezvous::join({.ranks = 2}, [] { return idOf(1); }).status().message(),
              HasSubstr("need a folder"));
  test::writeFile(folder / "file", "");
  const Status status =
      Rendezvous::join({.folder = folder / "file", .ranks = 2}, [] { return idOf(1); }).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr(folder / "file"));
}

TEST(Rendezvous, SaysWhichProcessStopped) {
  const TempFolder folder;
  const pid_t process = fork();
  if (process == 0) {
    const Joined joined = join(folder, 2, 3);
    pause();
    _exit(0);
  }
  std::vector<Joined> joined = joinAll(2, [&](int rank) { return join(folder, rank, 3); });
  EXPECT_THAT(messages(joined), Each(""));
  const Status failure(Code::Device, "step 5 did not complete");
  EXPECT_EQ((*joined[0])->explain(failure).message(), failure.message()) << "all live";
  kill(process, SIGKILL);
  EXPECT_EQ(waitpid(process, nullptr, 0), process);
  // As if it had been some time ago.
  const std::string alive = folder / "alive-2";
  struct stat info = {};
  ASSERT_EQ(stat(alive.c_str(), &info), 0);
  const std::array<timespec, 2> earlier = {{{0, UTIME_OMIT}, {info.st_mtim.tv_sec - 100, 0}}};
  ASSERT_EQ(utimensat(AT_FDCWD, alive.c_str(), earlier.data(), 0), 0);
  const Status explained = (*joined[0])->explain(failure);
  EXPECT_EQ(explained.code(), Code::Device);
  EXPECT_THAT(explained.message(),
              HasSubstr("step 5 did not complete; rank 2 has shown no sign of life for 10"));
  std::filesystem::remove(alive);
  EXPECT_THAT((*joined[0])->explain(failure).message(),
              HasSubstr("; rank 2 has ended: look at the output there"));
  EXPECT_TRUE((*joined[0])->explain(Status::ok()).isOk());
}

/// All show signs of life, and one of them still waits for its data.
TEST(Rendezvous, ExplainsWhoHasReadFewerBatches) {
  const TempFolder folder;
  std::vector<Joined> joined = joinAll(3, [&](int rank) { return join(folder, rank, 3); });
  ASSERT_THAT(messages(joined), Each(""));
  const Status failure(Code::Device, "step 5 did not complete");
  for (int rank = 0; rank < 3; ++rank)
    (*joined[rank])->noteBatches(rank == 2 ? 4 : 5);
  EXPECT_EQ((*joined[0])->explain(failure).message(),
            failure.message() +
                "; rank 2 has read fewer batches than this one: look at the data there");
  EXPECT_EQ((*joined[2])->explain(failure).message(),
            failure.message() + "; rank 0 has ended: look at the output there");
}

TEST(Rendezvous, DefaultFoldersAreOfOneUserRunAndHost) {
  RankEnvironment e{.rank = 0, .ranks = 2, .localRanks = 2, .launcher = "torchrun"};
  EXPECT_THAT(defaultRendezvousFolder(e).status().message(),
              AllOf(HasSubstr("torchrun gives the run no name"), HasSubstr("name a folder")));
  e.run = "29500/../x y-" + std::to_string(getpid());
  const Result<std::string> folder = defaultRendezvousFolder(e);
  ASSERT_TRUE(folder.isOk()) << folder.status().message();
  EXPECT_THAT(*folder, HasSubstr("/cgc-ranks-" + std::to_string(getuid()) + "-29500_.._x_y-"));
  struct stat info = {};
  ASSERT_EQ(stat(folder->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  {
    const std::vector<Joined> joined = joinAll(2, [&](int rank) {
      return Rendezvous::join(
          {.folder = *folder, .isTemporary = true, .rank = rank, .ranks = 2, .timeout = kLong},
          [] { return idOf(1); });
    });
    EXPECT_THAT(messages(joined), Each(""));
  }
  EXPECT_FALSE(std::filesystem::exists(*folder)) << "the last rank removes it";
  // Somebody else could have put it there.
  ASSERT_EQ(mkdir(folder->c_str(), 0777), 0);
  ASSERT_EQ(chmod(folder->c_str(), 0777), 0);
  EXPECT_THAT(defaultRendezvousFolder(e).status().message(), HasSubstr("not one of this user"));
  std::filesystem::remove(*folder);
  e.localRanks = 1;
  EXPECT_THAT(defaultRendezvousFolder(e).status().message(),
              AllOf(HasSubstr("the 2 ranks are on several hosts"), HasSubstr("name a folder")));
  e.localRanks = std::nullopt;
  EXPECT_THAT(defaultRendezvousFolder(e).status().message(), HasSubstr("may be on several hosts"));
}

} // namespace
} // namespace cgc::tool
