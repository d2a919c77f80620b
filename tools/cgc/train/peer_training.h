// PeerTraining: LibTorch's training of the module that a training plan was compiled from, beside
// that of the plan.
#pragma once

#include "frontend/frontend.h"
#include "runtime/plan/op_provider.h"
#include "runtime/train/trainer.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/draw/curve_svg.h"
#include "tools/cgc/load/memory_stages.h"
#include "tools/cgc/train/batch_reader.h"
#include "tools/cgc/train/optimizer_flags.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// The module that a training plan was compiled from, and what the user repeats of its step.
struct PeerFlags {
  std::string model, method, autocast; ///< Empty: not given.
  std::optional<uint32_t> loss;
  OptimizerFlags optimizer;
};

/// What LibTorch did.
struct PeerResult {
  std::string model;
  std::vector<CurvePoint> losses;           ///< Of every step.
  double millis = 0;                        ///< Of a step, without the first one if there are more.
  uint64_t ready = 0, steady = 0, peak = 0; ///< The memory in use.
  std::vector<std::string> notes;           ///< Why it may differ from the plan.
};

class PeerTraining final {
public:
  /// Loads the model for the GPU or the host, where it runs with `threads` threads; 0: LibTorch's
  /// default. Usage, naming the difference, if its parameters or its method are not those of
  /// `plan`, or if a flag says something else than the plan.
  static Result<PeerTraining> load(const PeerFlags &flags, const PlanData &plan,
                                   const Bucket &bucket, bool onGpu, int threads);

  /// Takes over the states and learning rates of `trainer`, before its first step.
  Status start(Trainer &trainer);
  /// Makes `steps` steps on the batches of `reader`; a signal (requestedStop) ends them early.
  Result<PeerResult> run(BatchReader &reader, uint64_t steps, uint64_t logEvery,
                         Progress &progress);

private:
  Status initialize(const PeerFlags &flags, const Bucket &bucket);
  frontend::PeerOptimizer peerOptimizer() const;
  Result<double> step(const Batch &batch, uint64_t number);

  const PlanData *plan_ = nullptr;
  OptimizerOptions optimizer_;
  std::unique_ptr<OpProvider> provider_; ///< Null on the host without a number of threads.
  std::unique_ptr<frontend::TrainerPeer> peer_;
  std::vector<float> rates_; ///< The learning rate of each group, without the schedule.
  std::optional<MemoryMeter> meter_;
  bool onGpu_ = false;
  int threads_ = 0;
  PeerResult result_;
};

} // namespace cgc::tool
