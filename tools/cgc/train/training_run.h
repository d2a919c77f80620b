// runTraining: the loop over the steps of a training.
#pragma once

#include "runtime/train/trainer.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/draw/curve_svg.h"
#include "tools/cgc/train/batch_reader.h"
#include "tools/cgc/train/validation.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cgc::tool {

/// The note of a checkpoint that is the number of the next batch.
inline constexpr const char *kBatchNote = "data.batch";

/// The steps whose batches may be in use at a time, for TrainerOptions::stepsInFlight. `accumulate`
/// is TrainingOptions::accumulate.
constexpr size_t stepsInFlight(size_t accumulate) {
  return accumulate == 0 ? 4 : 2;
}
/// The batches in memory: those in use, and one that is read meanwhile.
constexpr size_t batchSlots(size_t accumulate) {
  return (stepsInFlight(accumulate) + 1) * (accumulate == 0 ? 1 : accumulate) + 1;
}

struct TrainingOptions {
  uint64_t steps = 0;               ///< The number of steps to make.
  size_t accumulate = 0;            ///< The micro-batches of a step; 0: Trainer::step().
  uint64_t logEvery = 1;            ///< Steps from one line of progress to the next.
  std::string checkpoint = {};      ///< The folder to write; empty: none.
  uint64_t checkpointEvery = 0;     ///< Steps from one checkpoint to the next; 0: only at the end.
  Validation *validation = nullptr; ///< Borrowed; null: none.
  uint64_t validateEvery = 0;       ///< Steps from one validation to the next; one is at the end.
  bool failOnNan = false;       ///< Whether a NaN or infinity in the data or a loss is a failure.
  std::optional<int> rank = {}; ///< Of several; rank 0 writes the checkpoints.
  std::map<std::string, std::string> notes = {}; ///< For the checkpoints.
  /// The signal with which a rank wants all of them to stop, 0 for none, asked after every
  /// `logEvery`-th step and every 20th. Null: a signal to this process stops it after any step.
  std::function<Result<int>()> stops = {};
  /// Called with the number of batches that have been read, before the last one is used.
  std::function<void(uint64_t)> onBatch = [](uint64_t) {};
  /// Called after each log line; a failure ends the training.
  std::function<Status()> onLog = [] { return Status::ok(); };
};

struct TrainingResult {
  std::vector<CurvePoint> losses;     ///< Of every step.
  std::vector<CurvePoint> validation; ///< The losses after the steps that were validated.
  uint64_t microBatches = 0;          ///< Of a step that an interruption has left for later.
  uint64_t nonFiniteBatches = 0;      ///< Batches with a NaN or an infinity.
  double seconds = 0; ///< From the first step until all were complete, less validation.
  int stoppedBy = 0;  ///< The signal that ended the training early; 0: none.
};

/// Makes the steps, and writes the checkpoints, one of them at the end. A signal (requestedStop)
/// ends the training after the current step or micro-batch. Fails as Trainer's functions do, and
/// Failed for a NaN with `failOnNan`. A failure also writes a checkpoint of the steps before it if
/// there can be one; its message says which checkpoint is there.
Result<TrainingResult> runTraining(Trainer &trainer, BatchReader &reader,
                                   const TrainingOptions &options, Progress &progress);

} // namespace cgc::tool
