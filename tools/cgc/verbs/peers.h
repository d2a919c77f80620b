// PeerBench: times LibTorch's own ways to run a plan's model in the same way as the plan.
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

/// A way in which LibTorch runs a method.
enum class PeerSystem : uint8_t { Eager, Frozen, Captured };
/// "eager", "frozen" or "captured".
const char *systemName(PeerSystem system);

/// The figures of one system on one bucket.
struct PeerFigures {
  PeerSystem system = PeerSystem::Eager;
  std::optional<Timing> timing; ///< None: the system cannot run this bucket.
  std::string why;              ///< The reason if `timing` is none.
  double captureMillis = 0;     ///< Only for Captured.
};

/// The end of an error message where a wrong model is a likely cause.
inline constexpr const char *kThisModel = "was the plan compiled from this model?";
/// `status` followed by kThisModel, unless memory ran out or the GPU failed.
Status withThisModel(const Status &status);

class PeerBench final {
public:
  /// The systems that exist for a target.
  static std::vector<PeerSystem> systemsOf(DeviceKind target);
  /// Loads the model that `plan` was compiled from, for the same target and precision. On the CPU,
  /// LibTorch runs it with `threads` threads; 0: LibTorch's default.
  static Result<PeerBench> load(const std::string &model, const PlanData &plan, int threads);
  /// Runs the method of a bucket once. Usage if the model has no such method or another number of
  /// inputs; LibTorch's own error if it rejects the inputs.
  Status check(const PlanBucket &bucket);
  /// Measures `system` on a bucket for which check() has succeeded.
  Result<PeerFigures> measure(PeerSystem system, const PlanBucket &bucket, int samples);

private:
  Result<std::unique_ptr<frontend::Peer>> prepare(PeerSystem system, const PlanBucket &bucket);
  Status enqueue(frontend::Peer &peer);
  /// Waits until all enqueued work has completed.
  Status wait();
  Result<Timing> time(frontend::Peer &peer, int samples);
  Result<Timing> timeCaptured(frontend::Peer &peer, int samples, double &captureMillis);

  std::unique_ptr<frontend::Peers> peers_;
  // Controls LibTorch's streams, memory pools and threads. Null for target cpu without a number of
  // threads.
  std::unique_ptr<OpProvider> provider_;
  CudaStream stream_; ///< Only for target cuda.
  int threads_ = 0;
};

} // namespace cgc::tool
