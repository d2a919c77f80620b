// Training report: the result of `cgc train` as text and as JSON.
#pragma once

#include "runtime/plan/plan.h"
#include "tools/cgc/load/memory_stages.h"
#include "tools/cgc/train/peer_training.h"
#include "tools/cgc/train/training_run.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// What `cgc train` did.
struct TrainingReport {
  std::string plan;
  std::string executor;   ///< A value of --executor.
  uint64_t firstStep = 1; ///< The number of the first step.
  uint64_t logEvery = 1;  ///< Steps from one reported loss to the next.
  int64_t batch = 0;      ///< Samples of a step.
  uint64_t nonFiniteLosses = 0;
  uint64_t validationSamples = 0; ///< Of each validation; 0: none.
  std::string checkpoint, curve;  ///< What was written; empty: nothing.
  TrainingResult result;
  std::vector<MemoryStage> memory;
  std::optional<PeerResult> against = {}; ///< LibTorch on the same batches.
};

/// The stages of a training's memory: the prediction of `plan`, and what was measured when the
/// trainer was ready (`captured`), at the end (`steady`) and at most (`peak`). `counted` is
/// Trainer::memory().
std::vector<MemoryStage> trainingStages(const PlanData &plan, bool onGpu,
                                        const MemoryReport &counted, uint64_t captured,
                                        uint64_t steady, uint64_t peak);

std::string trainingText(const TrainingReport &report);
/// The fields of the JSON kind "train" (docs/cli.md). A loss that is NaN or infinite is null.
nlohmann::ordered_json trainingJson(const TrainingReport &report);

} // namespace cgc::tool
