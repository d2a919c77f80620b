// PeerBench: LibTorch's own ways to run a plan's model, timed as the plan is.
#pragma once

#include "frontend/frontend.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/plan/op_provider.h"
#include "tools/cgc/inputs.h"
#include "tools/cgc/timing.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// One of LibTorch's ways on one bucket.
struct PeerFigures {
  std::string system;           ///< "eager", "frozen" or "captured".
  std::optional<Timing> timing; ///< None: it cannot be run so.
  std::string why;              ///< Why not.
  double captureMillis = 0;     ///< Of "captured".
};

class PeerBench final {
public:
  /// Loads the model that `plan` was compiled from, for the same target and precision.
  static Result<PeerBench> load(const std::string &model, const PlanData &plan);
  /// Every way of the target, "eager" first. Usage if the model has no such method.
  Result<std::vector<PeerFigures>> measure(const PlanBucket &bucket, int samples);

private:
  Result<Timing> time(frontend::Peer &peer, int samples);
  Status capture(frontend::Peer &peer, int samples, PeerFigures &figures);

  std::unique_ptr<frontend::Peers> peers_;
  // Target cuda only: LibTorch's streams and memory pools go through the provider of ATen records.
  std::unique_ptr<OpProvider> provider_;
  CudaStream stream_;
};

} // namespace cgc::tool
