// Rendezvous: how ranks exchange the id of their communicator through a folder, and how they see
// which of them has ended.
//
// Each rank writes a request with a random number. Rank 0 waits for the requests of all ranks and
// publishes the id with their numbers. A rank accepts only what has its own number, so that no file
// of an earlier run is taken for one of this run. It then removes its request. While a rank lives,
// it touches a file once a second, in which it also says how many batches it has read, and that it
// has failed. At a normal end all files are gone.
#pragma once

#include "runtime/exec/communicator.h"
#include "tools/cgc/train/rank_environment.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::tool {

/// The folder for the ranks of `environment` if the caller names none: below the folder for
/// temporary files, by user and run. Only this user may access it. Usage if the ranks are not known
/// to be on one host or the launcher has no name for the run; the caller then has to name a folder
/// that all ranks share. Failed if the folder cannot be made or belongs to somebody else.
Result<std::string> defaultRendezvousFolder(const RankEnvironment &environment);

/// The id of these hexadecimal digits; std::nullopt if they are none.
std::optional<CommunicatorId> parseId(std::string_view digits);

struct RendezvousOptions {
  /// On a file system that all ranks share. Created if it is missing, not used for one rank.
  std::string folder;
  bool isTemporary = false; ///< The last rank removes the folder.
  int rank = 0, ranks = 1;
  std::chrono::milliseconds timeout = std::chrono::minutes(10); ///< For all ranks to come.
};

class Rendezvous final {
public:
  /// Meets the other ranks. Rank 0 calls `makeId` once all have come. Usage, naming the ranks, if
  /// one was started for another number of ranks or two processes are the same rank. Failed,
  /// naming the ranks, if some do not come within the timeout; if the folder cannot be written; or
  /// if a signal asks to stop (requestedStop). An error of rank 0 fails all ranks.
  static Result<std::unique_ptr<Rendezvous>>
  join(RendezvousOptions options, const std::function<Result<CommunicatorId>()> &makeId);
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;
  /// Ends the signs of life and removes this rank's files.
  ~Rendezvous();

  const CommunicatorId &id() const { return id_; }

  /// From now on, a thread calls `onLoss` once a second while another rank has failed, or a process
  /// of this host is gone that was one. Ranks that end in order are no loss. To be called once,
  /// after all have met.
  void watch(std::function<void()> onLoss);

  /// Notes how many batches this rank has read. May be called by any thread.
  void noteBatches(uint64_t batches);

  /// Tells the other ranks that this one has failed. Adds to `failure` which of them have ended or
  /// shown no sign of life for some seconds; if none has, which have read fewer batches than this
  /// one. Waits up to four seconds, to tell a rank that has just died from one
  /// that lives.
  Status explain(const Status &failure);

  struct Request;
  using Requests = std::map<int, Request>;

private:
  struct Pulse;
  explicit Rendezvous(RendezvousOptions options);
  Status meet(const std::function<Result<CommunicatorId>()> &makeId);
  Status lead(const std::function<Result<CommunicatorId>()> &makeId);
  Status follow();
  Status wait() const;
  Status publish(const Requests &to, const std::string &content) const;
  Status timeoutStatus(const std::vector<int> &missing) const;
  Status writeRequest() const;
  Status checkRequest(const Requests &requests) const;
  std::optional<std::chrono::nanoseconds> silence(int rank) const;
  bool isLost(int rank) const;
  std::vector<int> ranksBehind() const;
  std::string path(const char *kind, int rank) const;

  RendezvousOptions options_;
  std::chrono::steady_clock::time_point deadline_;
  std::string nonce_;
  CommunicatorId id_ = {};
  std::unique_ptr<Pulse> pulse_; ///< Null for one rank.
};

} // namespace cgc::tool
