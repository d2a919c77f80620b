// Communicator: the ranks of a distributed training, one process each, joined by NCCL. Part of the
// public C++ API of libcgc_runtime.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cgc {

/// NCCL's ncclUniqueId. One rank makes it, and all ranks need it to create their communicator.
using CommunicatorId = std::array<std::byte, 128>;

struct CommunicatorOptions {
  int rank = 0;  ///< Of this process, in [0, ranks).
  int ranks = 1; ///< Of the communicator, at least 1.
  /// The GPU of this rank, by its index in this process; -1 for ranks without a GPU, whose
  /// collectives are then of host memory. NCCL itself has none of those: for tests.
  int device = 0;
  /// Path of NCCL, or of its folder. Empty: the dynamic loader's search path, then the folder of
  /// libcgc_runtime, then the folder of the program.
  std::string ncclPath = {};
  /// How long a call waits for the other ranks.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

/// Something that has to be equal in all ranks, such as the hash of a plan.
struct SharedFact {
  std::string name;  ///< "the plan"
  std::string value; ///< Compared by its hash and shown in messages.
};

/// A communicator of NCCL. Its collectives are records of a plan, which an engine runs
/// (EngineOptions::communicator); all ranks have to run the same ones in the same order. Shared by
/// the engines that use it, so that it outlives their graphs. One thread uses it at a time, except
/// for check() and abort(), which are thread-safe.
class CGC_API Communicator final {
public:
  /// A new id. Opens NCCL at `ncclPath` (CommunicatorOptions::ncclPath). Device, with the paths
  /// searched and what to install, if NCCL is missing or older than 2.19.
  static Result<CommunicatorId> makeId(const std::string &ncclPath = {});

  /// Joins the communicator `id`, and returns when all ranks have joined. Usage if rank, ranks,
  /// device or timeout are out of range. Device if NCCL is missing, too old or refuses, or if the
  /// ranks do not join within the timeout: a thread of this process then still waits in NCCL, and
  /// `id` is of no further use.
  static Result<std::shared_ptr<Communicator>> create(const CommunicatorId &id,
                                                      CommunicatorOptions options);
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  /// Leaves the communicator, for which NCCL may wait for the other ranks, at most as long as the
  /// timeout. A rank that leaves for an error calls abort() before.
  ~Communicator();

  int rank() const;
  int ranks() const;
  int device() const; ///< CommunicatorOptions::device.

  /// Compares facts with the other ranks, which all call this with facts of the same names. Usage,
  /// naming the first fact that differs and the ranks with their values, if one does, on all ranks
  /// alike. Device if a rank does not answer within the timeout.
  Status agree(std::span<const SharedFact> facts);

  /// The largest number of all ranks, which all make this call. Device if a rank does not answer
  /// within the timeout.
  Result<uint8_t> largest(uint8_t own);

  /// The first failure: NCCL's asynchronous error, a call that NCCL refused, the timeout of a wait,
  /// or the reason of an abort(). Waits for nothing. After a failure the communicator is aborted.
  Status check();
  /// Ends all collectives that are enqueued, soon after it returns, and refuses further ones, for
  /// the reason `why`. Work behind them on a stream may then read what they did not write. Does
  /// nothing after a failure.
  void abort(const Status &why);

  struct Impl; ///< communicator_impl.h, which is not installed.

private:
  friend Communicator::Impl &implOf(Communicator &communicator);
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
