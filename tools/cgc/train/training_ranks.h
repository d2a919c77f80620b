// TrainingRanks: this process as one of the ranks of `cgc train` or `cgc profile`.
#pragma once

#include "runtime/exec/communicator.h"
#include "runtime/plan/plan.h"
#include "tools/cgc/train/rank_environment.h"
#include "tools/cgc/train/rendezvous.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace cgc::tool {

/// What a verb is told of ranks.
struct RankFlags {
  std::string rendezvous;           ///< The folder in which ranks meet; empty: the default one.
  std::optional<CommunicatorId> id; ///< That the ranks have exchanged; none: they meet in a folder.
  std::string nccl;                 ///< NCCL, or its folder; empty: where the loader finds it.
  double timeout = 600;             ///< The seconds that a rank waits for the others.
};

/// Adds --rendezvous, --communicator-id, --timeout and --nccl; `flags` must outlive `command`.
void addRankOptions(CLI::App &command, RankFlags &flags);

class TrainingRanks final {
public:
  /// Reads the launcher's environment, without meeting anybody. Usage if there are several ranks
  /// and the plan is not compiled for that, or for another number.
  static Result<TrainingRanks> create(const PlanData &plan, const RankFlags &flags);

  int rank() const { return environment_.rank; }
  int ranks() const { return environment_.ranks; }
  /// Whether this process reports, and writes files.
  bool leads() const { return rank() == 0; }
  /// The index of this rank's GPU, if the caller names none.
  int localRank() const { return environment_.localRank; }
  /// The ranks of this host, or of all if the launcher does not say.
  int localRanks() const { return environment_.localRanks.value_or(ranks()); }

  /// The status of finding this rank's GPU, with what to do if there are fewer of them than ranks.
  Status withGpu(const Status &found) const;
  /// Meets the other ranks; does nothing for one rank. `device` is -1 without a GPU. Fails as
  /// Rendezvous::join and Communicator::create do.
  Status join(int device);
  /// Null for one rank, and before join().
  const std::shared_ptr<Communicator> &communicator() const { return communicator_; }

  /// Communicator::agree, if there are other ranks.
  Status agree(std::span<const SharedFact> facts) const;
  /// The largest of the ranks' numbers, which are from 0 to 255. All ranks make the call.
  Result<int> largest(int own) const;
  /// Runs `body`, which waits for the other ranks, as long as --timeout.
  Status within(const std::string &what, const std::function<Status()> &body) const;
  /// Tells the other ranks, should they wait, how many batches this one has read.
  void noteBatches(uint64_t batches) const {
    if (rendezvous_)
      rendezvous_->noteBatches(batches);
  }
  /// Ends the signs of life, before the process ends without destructors.
  void leave() { rendezvous_.reset(); }

  /// The failure of this rank with its number, and which other ranks have ended. Ends the
  /// collectives of the others.
  Status explain(const Status &failure) const;

private:
  /// Exchanges the id in a folder.
  Status meet(std::chrono::milliseconds timeout);

  RankFlags flags_;
  RankEnvironment environment_;
  std::unique_ptr<Rendezvous> rendezvous_; // Outlives the communicator. Null without a folder.
  std::shared_ptr<Communicator> communicator_;
};

} // namespace cgc::tool
