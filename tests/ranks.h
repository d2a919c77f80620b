// Ranks of a communicator as threads of a test, joined by the stand-in for NCCL.
#pragma once

#include "runtime/exec/communicator.h"
#include "tests/op_library_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cgc::test {

/// The stand-in, tests/plugin_libraries/nccl.cpp.
inline std::string testNccl() {
  return builtLibrary("test_nccl/libnccl.so.2");
}

/// Sets an environment variable while it lives. No other thread may run when it begins or ends.
class Variable final {
public:
  Variable(std::string name, const std::string &value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;
  ~Variable() { unsetenv(name_.c_str()); }

private:
  std::string name_;
};

struct Ranks {
  int count = 2;
  bool haveGpus = false; ///< GPU r is that of rank r; else they have none.
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
};

/// The options of a rank.
inline CommunicatorOptions optionsOf(const Ranks &ranks, int rank) {
  return {.rank = rank,
          .ranks = ranks.count,
          .device = ranks.haveGpus ? rank : -1,
          .ncclPath = testNccl(),
          .timeout = ranks.timeout};
}

/// Runs `body` in a thread for each rank, with its communicator.
inline void onRanks(const Ranks &ranks, const std::function<void(Communicator &)> &body) {
  const Result<CommunicatorId> id = Communicator::makeId(testNccl());
  ASSERT_TRUE(id.isOk()) << id.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.count; ++rank)
    threads.emplace_back([&, rank] {
      const auto communicator = Communicator::create(*id, optionsOf(ranks, rank));
      ASSERT_TRUE(communicator.isOk()) << communicator.status().message();
      body(**communicator);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace cgc::test
