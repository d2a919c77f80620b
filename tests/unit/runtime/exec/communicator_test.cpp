// Communicators of ranks without a GPU: results of the collectives, facts that differ, faults, and
// libraries that are not NCCL.
#include "runtime/exec/communicator_impl.h"
#include "runtime/kernels/reference_elements.h"
#include "tests/ranks.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::array kKinds = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                               CollectiveKind::ReduceScatter, CollectiveKind::Broadcast};

template <class T> double toDouble(T value) {
  if constexpr (reference::kIsHalf<T>)
    return reference::toFloat(value);
  else
    return double(value);
}
template <class T> T fromDouble(double value) {
  if constexpr (reference::kIsHalf<T>)
    return reference::fromFloat<T>(float(value));
  else
    return T(value);
}

/// Element i of the operand of a rank: a small integer, which all dtypes have and all sums too.
double operandAt(int rank, size_t i) {
  return double((rank * 3 + i * 5) % 7);
}

/// The result of a collective whose operands are operandAt(), computed in f64.
template <class T>
std::vector<double> expected(CollectiveKind kind, Reduction reduction, size_t count, int rank,
                             int ranks) {
  const auto reduced = [&](size_t i) {
    double sum = operandAt(0, i), most = sum;
    for (int r = 1; r < ranks; ++r) {
      sum += operandAt(r, i);
      most = std::max(most, operandAt(r, i));
    }
    // A reciprocal, as in the stand-in, in the precision of the sum.
    const double part = std::is_same_v<T, double> ? 1.0 / ranks : double(1.0f / float(ranks));
    return reduction == Reduction::Max   ? most
           : reduction == Reduction::Sum ? sum
           : std::is_same_v<T, double>   ? sum * part
                                         : double(float(sum) * float(part));
  };
  std::vector<double> result;
  switch (kind) {
  case CollectiveKind::AllReduce:
    for (size_t i = 0; i < count; ++i)
      result.push_back(reduced(i));
    break;
  case CollectiveKind::AllGather:
    for (int r = 0; r < ranks; ++r)
      for (size_t i = 0; i < count; ++i)
        result.push_back(operandAt(r, i));
    break;
  case CollectiveKind::ReduceScatter:
    for (size_t i = 0; i < count / ranks; ++i)
      result.push_back(reduced(rank * (count / ranks) + i));
    break;
  case CollectiveKind::Broadcast:
    for (size_t i = 0; i < count; ++i)
      result.push_back(operandAt(0, i));
    break;
  }
  return result;
}

template <class T>
void testCollective(Communicator &c, DType dtype, CollectiveKind kind, Reduction reduction,
                    size_t count) {
  std::vector<T> operand;
  for (size_t i = 0; i < count; ++i)
    operand.push_back(fromDouble<T>(operandAt(c.rank(), i)));
  const std::vector<double> want = expected<T>(kind, reduction, count, c.rank(), c.ranks());
  std::vector<T> result(want.size());
  const CollectivePart part{operand.data(), result.data(), count, dtype};
  const Status status = enqueueCollective(c, kind, reduction, {&part, 1}, nullptr);
  ASSERT_TRUE(status.isOk()) << status.message();
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(toDouble(result[i]), toDouble(fromDouble<T>(want[i])))
        << dtypeName(dtype) << " kind " << int(kind) << " reduction " << int(reduction) << " at "
        << i;
}

template <class T> void testKinds(Communicator &c, DType dtype, size_t perRank) {
  const size_t count = perRank * c.ranks();
  for (const CollectiveKind kind : kKinds)
    for (const Reduction reduction : {Reduction::Sum, Reduction::Mean, Reduction::Max})
      if (reduction != Reduction::Mean || isFloating(dtype))
        testCollective<T>(c, dtype, kind, reduction, count);
}

class RankCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Communicator, RankCounts, testing::Values(1, 2, 3, 8));

TEST_P(RankCounts, ComputeEveryCollectiveOfEveryDType) {
  onRanks({.count = GetParam()}, [](Communicator &c) {
    testKinds<float>(c, DType::F32, 5);
    testKinds<double>(c, DType::F64, 5);
    testKinds<reference::F16>(c, DType::F16, 5);
    testKinds<reference::BF16>(c, DType::BF16, 5);
    testKinds<int32_t>(c, DType::I32, 5);
    testKinds<int64_t>(c, DType::I64, 5);
    testKinds<int8_t>(c, DType::I8, 5);
    testKinds<uint8_t>(c, DType::U8, 5);
    // NCCL has no type of 16-bit integers, but copies them.
    testCollective<int16_t>(c, DType::I16, CollectiveKind::AllGather, {}, 7);
    testCollective<int16_t>(c, DType::I16, CollectiveKind::Broadcast, {}, 7);
    testCollective<uint8_t>(c, DType::Bool, CollectiveKind::AllReduce, Reduction::Max, 7);
    // Larger than what the stand-in computes at once.
    testCollective<float>(c, DType::F32, CollectiveKind::AllReduce, Reduction::Sum, 100003);
    testCollective<float>(c, DType::F32, CollectiveKind::ReduceScatter, Reduction::Sum,
                          size_t(50021) * c.ranks());
    EXPECT_TRUE(c.check().isOk());
  });
}

TEST_P(RankCounts, ComputeInPlaceAndInGroups) {
  onRanks({.count = GetParam()}, [](Communicator &c) {
    std::vector<float> a(40000, float(c.rank() + 1)), b(3, float(c.rank()));
    const std::array<CollectivePart, 3> parts = {{{a.data(), a.data(), a.size(), DType::F32},
                                                  {b.data(), b.data(), b.size(), DType::F32},
                                                  {b.data(), b.data(), 0, DType::F32}}};
    ASSERT_TRUE(
        enqueueCollective(c, CollectiveKind::AllReduce, Reduction::Sum, parts, nullptr).isOk());
    EXPECT_THAT(a, Each(Eq(c.ranks() * (c.ranks() + 1) / 2)));
    EXPECT_THAT(b, Each(Eq(c.ranks() * (c.ranks() - 1) / 2)));
    std::fill(a.begin(), a.end(), float(c.rank() + 5));
    ASSERT_TRUE(enqueueCollective(c, CollectiveKind::Broadcast, {}, parts, nullptr).isOk());
    EXPECT_THAT(a, Each(5));
  });
}

TEST_P(RankCounts, ReduceToOneOfThem) {
  onRanks({.count = GetParam()}, [](Communicator &c) {
    for (int root = 0; root < c.ranks(); ++root) {
      std::vector<float> operand(5, float(c.rank() + 1)), result(5), inPlace(3, float(c.rank()));
      const std::array<CollectivePart, 2> parts = {
          {{operand.data(), result.data(), result.size(), DType::F32},
           {inPlace.data(), inPlace.data(), inPlace.size(), DType::F32}}};
      const Status status =
          enqueueCollective(c, CollectiveKind::AllReduce, Reduction::Mean, parts, nullptr, root);
      ASSERT_TRUE(status.isOk()) << status.message();
      if (c.rank() == root) {
        EXPECT_THAT(result, Each(testing::FloatEq(float(c.ranks() + 1) / 2)));
        EXPECT_THAT(inPlace, Each(testing::FloatEq(float(c.ranks() - 1) / 2)));
      }
    }
  });
}

TEST_P(RankCounts, AgreeOnEqualFacts) {
  onRanks({.count = GetParam()}, [](Communicator &c) {
    const std::array facts = {SharedFact{"the plan", "1234"}, SharedFact{"the batch", ""}};
    const Status status = c.agree(facts);
    EXPECT_TRUE(status.isOk()) << status.message();
    EXPECT_TRUE(c.agree({}).isOk());
  });
}

TEST(Communicator, RefusesReductionsThatNcclHasNot) {
  onRanks({.count = 1}, [](Communicator &c) {
    std::array<int64_t, 1> data = {};
    const auto refuse = [&](DType dtype, CollectiveKind kind, Reduction reduction) {
      const CollectivePart part{data.data(), data.data(), 1, dtype};
      const Status status = enqueueCollective(c, kind, reduction, {&part, 1}, nullptr);
      EXPECT_EQ(status.code(), Code::Unsupported);
      EXPECT_THAT(status.message(), HasSubstr("of " + std::string(dtypeName(dtype))));
    };
    refuse(DType::Bool, CollectiveKind::AllReduce, Reduction::Sum);
    refuse(DType::Bool, CollectiveKind::ReduceScatter, Reduction::Mean);
    refuse(DType::I32, CollectiveKind::AllReduce, Reduction::Mean);
    refuse(DType::I16, CollectiveKind::AllReduce, Reduction::Max);
    EXPECT_TRUE(c.check().isOk()); // It goes on.
  });
}

/// Runs `body` on all ranks and returns its results, in rank order.
std::vector<Status> onEachRank(const Ranks &ranks,
                               const std::function<Status(Communicator &)> &body) {
  std::vector<Status> statuses(ranks.count);
  onRanks(ranks, [&](Communicator &c) { statuses[c.rank()] = body(c); });
  return statuses;
}
std::vector<std::string> messages(const std::vector<Status> &statuses) {
  std::vector<std::string> texts;
  for (const Status &status : statuses)
    texts.push_back(status.message());
  return texts;
}

TEST(Communicator, NamesTheFactThatDiffersWithRanksAndValues) {
  const std::vector<Status> statuses = onEachRank({.count = 5}, [](Communicator &c) {
    const bool isOdd = c.rank() == 1 || c.rank() == 4;
    const std::array facts = {SharedFact{"the version", "1"},
                              SharedFact{"the plan", isOdd ? "b.cgplan" : "a.cgplan"},
                              SharedFact{"the batch", std::to_string(c.rank())}};
    const Status status = c.agree(facts);
    EXPECT_TRUE(c.check().isOk()) << "a comparison leaves the communicator usable";
    return status;
  });
  for (const Status &status : statuses) {
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_EQ(status.message(), "the ranks differ in the plan: ranks 0, 2-3 have 'a.cgplan'; ranks "
                                "1, 4 have 'b.cgplan'; start all ranks with the same");
  }
}

TEST(Communicator, CutsLongFactsAndComparesThemWhole) {
  const std::vector<Status> statuses = onEachRank({.count = 2}, [](Communicator &c) {
    return c.agree(
        std::array{SharedFact{"the weights", std::string(1000, 'x') + std::to_string(c.rank())}});
  });
  EXPECT_EQ(statuses[0].message(), statuses[1].message());
  EXPECT_THAT(statuses[0].message(),
              AllOf(HasSubstr("rank 0 has 'xxx"), HasSubstr("rank 1 has 'xxx"), HasSubstr("(hash "),
                    Not(HasSubstr(std::string(200, 'x')))));
}

TEST(Communicator, RefusesToCompareDifferentFacts) {
  const std::vector<Status> statuses = onEachRank({.count = 2}, [](Communicator &c) {
    std::vector<SharedFact> facts = {{"the plan", "1"}};
    if (c.rank() == 1)
      facts.push_back({"the seed", "1"});
    return c.agree(facts);
  });
  EXPECT_THAT(messages(statuses), Each(HasSubstr("the ranks compare different facts")));
}

/// Runs a collective of six floats.
Status collective(Communicator &c, CollectiveKind kind, DType dtype = DType::F32,
                  Reduction reduction = Reduction::Sum, size_t count = 6) {
  std::vector<double> operand(64), result(64);
  const CollectivePart part{operand.data(), result.data(), count, dtype};
  return enqueueCollective(c, kind, reduction, {&part, 1}, nullptr);
}

TEST(Communicator, CallsThatDifferFailOnAllRanks) {
  const std::vector<std::pair<std::function<Status(Communicator &)>, std::string>> others = {
      {[](Communicator &c) { return collective(c, CollectiveKind::Broadcast); }, "broadcast of 6"},
      {[](Communicator &c) { return collective(c, CollectiveKind::AllReduce, DType::I32); },
       "of 6 i32"},
      {[](Communicator &c) {
         return collective(c, CollectiveKind::AllReduce, DType::F32, Reduction::Max);
       },
       "(maximum)"},
      {[](Communicator &c) {
         return collective(c, CollectiveKind::AllReduce, DType::F32, Reduction::Sum, 5);
       },
       "of 5 f32"}};
  for (const auto &[other, text] : others) {
    const std::vector<Status> statuses = onEachRank({.count = 3}, [&](Communicator &c) {
      const Status status = c.rank() == 2 ? other(c) : collective(c, CollectiveKind::AllReduce);
      EXPECT_EQ(c.check().message(), status.message());
      EXPECT_EQ(collective(c, CollectiveKind::AllGather).message(), status.message());
      return status;
    });
    EXPECT_THAT(messages(statuses),
                Each(AllOf(HasSubstr("a collective failed"), HasSubstr("all-reduce (sum) of 6 f32"),
                           HasSubstr("rank 2"), HasSubstr(text))));
  }
}

TEST(Communicator, EachCollectiveMayFailOnEachRank) {
  for (const CollectiveKind kind : kKinds)
    for (int failing = 0; failing < 3; ++failing) {
      const Variable fault("NCCL_TEST_FAULT", std::to_string(failing) + ":2:error");
      const std::vector<Status> statuses = onEachRank({.count = 3}, [&](Communicator &c) {
        EXPECT_TRUE(collective(c, kind).isOk());
        const Status status = collective(c, kind);
        EXPECT_EQ(collective(c, kind).message(), status.message());
        EXPECT_EQ(c.agree({}).message(), status.message());
        return status;
      });
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(statuses[rank].code(), Code::Device);
        EXPECT_THAT(statuses[rank].message(),
                    HasSubstr(rank == failing ? "system error: the fault"
                                              : "remote error: rank " + std::to_string(failing)));
      }
    }
}

TEST(Communicator, ACallThatNcclRefusesFailsAndOthersTimeOut) {
  const Variable fault("NCCL_TEST_FAULT", "1:1:refuse");
  const std::vector<Status> statuses =
      onEachRank({.count = 2, .timeout = milliseconds(1000)},
                 [](Communicator &c) { return collective(c, CollectiveKind::AllGather); });
  EXPECT_THAT(statuses[0].message(), StartsWith("an all-gather did not complete within 1 s"));
  EXPECT_THAT(statuses[1].message(),
              AllOf(HasSubstr("NCCL cannot run an all-gather"),
                    HasSubstr("the refusal that the test asked for"), HasSubstr("NCCL_DEBUG")));
}

TEST(Communicator, EndsWhenARankHangs) {
  const Variable fault("NCCL_TEST_FAULT", "2:3:hang");
  const std::vector<Status> statuses =
      onEachRank({.count = 3, .timeout = milliseconds(1000)}, [](Communicator &c) {
        EXPECT_TRUE(c.agree(std::array{SharedFact{"the plan", "1"}}).isOk());
        return c.agree(std::array{SharedFact{"the plan", "1"}});
      });
  for (const Status &status : statuses) {
    EXPECT_EQ(status.code(), Code::Device);
    EXPECT_THAT(status.message(), HasSubstr("did not complete within 1 s"));
  }
}

/// The collectives within a wait have timeouts of their own.
TEST(Communicator, AWaitEndsAfterItsCollectives) {
  const std::vector<Status> statuses =
      onEachRank({.count = 2, .timeout = milliseconds(300)}, [](Communicator &c) {
        return within(c, "the step", [&] {
          EXPECT_TRUE(collective(c, CollectiveKind::AllReduce).isOk());
          for (int i = 0; i < 10000 && c.check().isOk(); ++i) // What never completes.
            std::this_thread::sleep_for(milliseconds(1));
          return Status::ok();
        });
      });
  for (const Status &status : statuses)
    EXPECT_THAT(status.message(), StartsWith("the step did not complete within 0.3 s"));
}

TEST(Communicator, ALateRankIsWaitedFor) {
  const Variable fault("NCCL_TEST_FAULT", "1:1:delay-50");
  EXPECT_THAT(messages(onEachRank({}, [](Communicator &c) { return c.agree({}); })), Each(""));
}

TEST(Communicator, AbortEndsACollectiveForItsReason) {
  const Variable fault("NCCL_TEST_FAULT", "1:1:hang");
  std::atomic<int> aborted = 0;
  const std::vector<Status> statuses = onEachRank({}, [&](Communicator &c) {
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(20));
      c.abort({Code::Failed, "reason " + std::to_string(c.rank())});
      c.abort({Code::Failed, "a later reason"});
      ++aborted;
    });
    const Status status = collective(c, CollectiveKind::AllReduce);
    other.join();
    EXPECT_EQ(c.check().message(), status.message());
    return status;
  });
  EXPECT_EQ(messages(statuses), (std::vector<std::string>{"reason 0", "reason 1"}));
}

TEST(Communicator, ARankThatDoesNotJoinIsWaitedForNoLongerThanTheTimeout) {
  const Result<CommunicatorId> id = Communicator::makeId(testNccl());
  ASSERT_TRUE(id.isOk());
  const Ranks ranks{.count = 3, .timeout = milliseconds(200)};
  const Status status = Communicator::create(*id, optionsOf(ranks, 1)).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("rank 1 waited 0.2 s for the other ranks of 3 to join"),
                    HasSubstr("NCCL_SOCKET_IFNAME")));
}

TEST(Communicator, RefusesOptionsOutOfRange) {
  const auto refusal = [](const CommunicatorOptions &options) {
    const Status status = Communicator::create({}, options).status();
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(refusal({.ranks = 0}), HasSubstr("at least 1 rank, not 0"));
  EXPECT_THAT(refusal({.rank = 2, .ranks = 2}), HasSubstr("rank 2 is not one of the 2"));
  EXPECT_THAT(refusal({.rank = -1, .ranks = 2}), HasSubstr("rank -1"));
  EXPECT_THAT(refusal({.device = -2}), HasSubstr("-2"));
  EXPECT_THAT(refusal({.timeout = milliseconds(0)}), HasSubstr("0 ms"));
  EXPECT_THAT(refusal({.timeout = std::chrono::hours(24 * 1000)}), HasSubstr("to a year"));
}

TEST(Communicator, RanksOfOtherIdsAndNumbersAreRefused) {
  EXPECT_THAT(Communicator::create({}, optionsOf({.count = 1}, 0)).status().message(),
              AllOf(HasSubstr("NCCL cannot join the ranks"), HasSubstr("invalid argument")));
}

TEST(Communicator, LibrariesThatAreNotNcclAreRefused) {
  const TempFolder folder;
  EXPECT_THAT(Communicator::makeId(folder.path()).status().message(),
              AllOf(HasSubstr("several ranks need NCCL"), HasSubstr(folder / "libnccl.so.2"),
                    HasSubstr("LD_LIBRARY_PATH")));
  EXPECT_THAT(Communicator::makeId("libm.so.6").status().message(),
              AllOf(HasSubstr("has no function ncclGetVersion"), HasSubstr("2.19")));
  const Variable version("NCCL_TEST_VERSION", "21805");
  EXPECT_THAT(Communicator::makeId(testNccl()).status().message(),
              HasSubstr("is of version 2.18.5"));
  EXPECT_EQ(Communicator::makeId(testNccl()).status().code(), Code::Device);
}

/// Runs `body` in a process of its own for each rank. Returns the messages of the statuses; of a
/// process that died, its signal.
std::vector<std::string> inProcesses(const Ranks &ranks,
                                     const std::function<Status(Communicator &)> &body) {
  const Result<CommunicatorId> id = Communicator::makeId(testNccl());
  std::vector<std::pair<pid_t, int>> processes;
  for (int rank = 0; rank < ranks.count; ++rank) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe(ends.data()), 0);
    const pid_t process = fork();
    if (process == 0) {
      std::string message;
      {
        const auto communicator = Communicator::create(*id, optionsOf(ranks, rank));
        message = (communicator.isOk() ? body(**communicator) : communicator.status()).message();
      }
      (void)!write(ends[1], message.data(), message.size());
      _exit(0);
    }
    close(ends[1]);
    processes.emplace_back(process, ends[0]);
  }
  std::vector<std::string> results;
  for (const auto &[process, output] : processes) {
    std::string text(4096, '\0');
    size_t size = 0;
    for (ssize_t got; (got = read(output, text.data() + size, text.size() - size)) > 0;)
      size += size_t(got);
    close(output);
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    results.push_back(WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                          : text.substr(0, size));
  }
  const std::string file(reinterpret_cast<const char *>(id->data()));
  EXPECT_FALSE(std::filesystem::exists(file)) << "the stand-in left its file";
  return results;
}

TEST(Communicator, ProcessesAreRanks) {
  const auto body = [](Communicator &c) {
    float value = float(c.rank());
    const CollectivePart part{&value, &value, 1, DType::F32};
    CGC_TRY(enqueueCollective(c, CollectiveKind::AllReduce, Reduction::Sum, {&part, 1}, nullptr));
    return Status(Code::Failed, std::to_string(value));
  };
  EXPECT_THAT(inProcesses({.count = 3}, body), Each("3.000000"));
}

TEST(Communicator, EndsWhenAProcessDies) {
  const Variable fault("NCCL_TEST_FAULT", "1:2:die");
  const std::vector<std::string> results =
      inProcesses({.count = 3, .timeout = milliseconds(1000)}, [](Communicator &c) {
        CGC_TRY(collective(c, CollectiveKind::AllReduce));
        return collective(c, CollectiveKind::Broadcast);
      });
  EXPECT_EQ(results[1], "signal 9");
  EXPECT_THAT(results[0], HasSubstr("a broadcast did not complete within 1 s"));
  EXPECT_EQ(results[2], results[0]);
}

/// The stand-in's file of a communicator that was killed while it waited for others to join.
TEST(Communicator, FilesOfDeadProcessesAreRemoved) {
  const Result<CommunicatorId> id = Communicator::makeId(testNccl());
  ASSERT_TRUE(id.isOk());
  const std::string file(reinterpret_cast<const char *>(id->data()));
  const pid_t process = fork();
  if (process == 0) {
    (void)Communicator::create(*id, optionsOf({}, 0));
    _exit(0);
  }
  std::error_code error; // It has a size when it is locked.
  for (uintmax_t size = 0; size == 0 || error; size = std::filesystem::file_size(file, error))
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(Communicator::makeId(testNccl()).isOk());
  EXPECT_TRUE(std::filesystem::exists(file)) << "its process lives";
  kill(process, SIGKILL);
  EXPECT_EQ(waitpid(process, nullptr, 0), process);
  EXPECT_TRUE(Communicator::makeId(testNccl()).isOk());
  EXPECT_FALSE(std::filesystem::exists(file));
}

} // namespace
} // namespace cgc::test
