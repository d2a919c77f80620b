// Load: puts requests of many threads on a session and measures them.
#pragma once

#include "runtime/session/session.h"
#include "tools/cgc/io/target_tensors.h"
#include "tools/cgc/load/request_mix.h"
#include "tools/cgc/verbs/timing.h"

#include <array>
#include <atomic>
#include <functional>
#include <vector>

namespace cgc::tool {

struct LoadOptions {
  int clients = 1;
  double seconds = 1;
  /// Requests per second, which arrive as a Poisson process whether or not earlier ones are done.
  /// 0: a closed loop, in which each client sends its next request when the last one is done.
  double rate = 0;
  DeviceKind tensors = DeviceKind::Cpu; ///< The memory of inputs and outputs.
  int devices =
      1; ///< Client i uses memory of GPU i modulo `devices`, if tensors are in its memory.
};

/// What a load of a session measured.
struct LoadFigures {
  double seconds = 0; ///< From the first request to the end of the last one.
  uint64_t rows = 0;  ///< Of the requests that succeeded.
  /// Milliseconds of the requests that succeeded, from the scheduled arrival (closed loop: the
  /// call) to the results.
  Samples latency;
  std::vector<size_t> succeeded; ///< Requests by kind.
  std::array<uint64_t, kNumCodes> failuresByCode = {};
  std::string firstFailure; ///< The message of the first failure.
  /// Requests of an open loop that had arrived when the time was over, and that no client had
  /// taken.
  uint64_t backlog = 0;
  /// Counted by the session during the load.
  uint64_t splits = 0, bucketRuns = 0, paddedRows = 0, waits = 0, waitMicros = 0;

  size_t requests() const;
  uint64_t failures() const;
};

/// Requests of one thread that runs nothing else, as fast as they can be enqueued.
struct BackToBack {
  size_t requests = 0;
  uint64_t rows = 0;
  double seconds = 0;
};

/// The tensors of all kinds of requests, with a set of outputs for each client.
class Load final {
public:
  /// Allocates the tensors. `session` is borrowed. `kinds` is not empty.
  static Result<Load> create(Session &session, std::vector<RequestKind> kinds, LoadOptions options);

  /// Runs each kind once for each client, unmeasured. Fails as the first request that fails.
  Status warmUp();
  /// Runs the load. `beside`, if given, runs on a thread of its own meanwhile, and must return
  /// soon after its argument becomes true.
  LoadFigures run(const std::function<void(const std::atomic<bool> &ended)> &beside = nullptr);
  /// Runs these numbers of requests of each kind in random order. On GPUs: each enqueued on the one
  /// stream of its device, with a single wait at the end. Fails as the first request that fails.
  Result<BackToBack> backToBack(const std::vector<size_t> &counts);

private:
  struct Client;
  Load(Session &session, std::vector<RequestKind> kinds, LoadOptions options)
      : session_(session),
        kinds_(std::make_unique<const std::vector<RequestKind>>(std::move(kinds))),
        options_(options) {}
  Status runOne(int client, size_t kind, void *stream = nullptr);
  int deviceOfClient(int client) const { return client % options_.devices; }

  Session &session_;
  /// The views of the tensors borrow the sizes.
  std::unique_ptr<const std::vector<RequestKind>> kinds_;
  LoadOptions options_;
  std::vector<std::vector<TargetTensors>> inputs_;  ///< [device][kind], which all clients read.
  std::vector<std::vector<TargetTensors>> outputs_; ///< [client][kind]
};

} // namespace cgc::tool
