// PeerBench: LibTorch's own ways to run a plan's model, timed as the plan is.
#pragma once

#include "frontend/frontend.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/plan/op_provider.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/verbs/timing.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// LibTorch's ways to run a method.
enum class PeerSystem : uint8_t { Eager, Frozen, Captured };
/// "eager", "frozen" or "captured".
const char *systemName(PeerSystem system);

/// One of them on one bucket.
struct PeerFigures {
  PeerSystem system = PeerSystem::Eager;
  std::optional<Timing> timing; ///< None: it cannot be run so.
  std::string why;              ///< Why not.
  double captureMillis = 0;     ///< Of Captured.
};

/// How a failure ends that another model would explain.
inline constexpr const char *kThisModel = "was the plan compiled from this model?";
/// `status` followed by kThisModel, unless memory ran out or the GPU failed.
Status withThisModel(const Status &status);

class PeerBench final {
public:
  /// Those that a target has.
  static std::vector<PeerSystem> systemsOf(DeviceKind target);
  /// Loads the model that `plan` was compiled from, for the same target and precision. On the CPU
  /// it runs with `threads` threads; 0: as LibTorch sets them.
  static Result<PeerBench> load(const std::string &model, const PlanData &plan, int threads);
  /// Runs the method of a bucket once: Usage if the model has no such method or another number of
  /// inputs, LibTorch's reason if it refuses them.
  Status check(const PlanBucket &bucket);
  /// For a bucket that check() has passed.
  Result<PeerFigures> measure(PeerSystem system, const PlanBucket &bucket, int samples);

private:
  Result<std::unique_ptr<frontend::Peer>> prepare(PeerSystem system, const PlanBucket &bucket);
  Status enqueue(frontend::Peer &peer);
  /// Until what is enqueued has ended.
  Status wait();
  Result<Timing> time(frontend::Peer &peer, int samples);
  Result<Timing> timeCaptured(frontend::Peer &peer, int samples, double &captureMillis);

  std::unique_ptr<frontend::Peers> peers_;
  // LibTorch's streams, memory pools and threads go through the provider of ATen records. Null for
  // target cpu without a number of threads.
  std::unique_ptr<OpProvider> provider_;
  CudaStream stream_; ///< Target cuda only.
  int threads_ = 0;
};

} // namespace cgc::tool
