// runTraining: enqueues steps, reads their losses when they are there, and writes checkpoints.
#include "tools/cgc/train/training_run.h"

#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/signals.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <deque>

namespace cgc::tool {
namespace {

class Run {
public:
  Run(Trainer &trainer, BatchReader &reader, const TrainingOptions &options, Progress &progress)
      : trainer_(trainer), reader_(reader), options_(options), progress_(progress) {}

  Result<TrainingResult> run() {
    const auto start = std::chrono::steady_clock::now();
    uint64_t saved = UINT64_MAX; // The step of the last checkpoint.
    for (uint64_t i = 0; i < options_.steps && requestedStop() == 0; ++i) {
      const uint64_t first = reader_.position();
      CGC_TRY(step());
      batches_.push_back(reader_.position() - first);
      // The trainer has waited for all steps before these.
      if (batches_.size() > stepsInFlight(options_.accumulate)) {
        for (uint64_t n = batches_.front(); n > 0; --n)
          reader_.release();
        batches_.pop_front();
      }
      CGC_TRY(poll());
      if (options_.checkpointEvery != 0 && trainer_.microBatches() == 0 &&
          trainer_.stepNumber() % options_.checkpointEvery == 0) {
        CGC_TRY(save());
        saved = trainer_.stepNumber();
      }
    }
    CGC_TRY(trainer_.wait());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    CGC_TRY(poll());
    if (!options_.checkpoint.empty() &&
        (saved != trainer_.stepNumber() || trainer_.microBatches() != 0))
      CGC_TRY(save());
    result_.microBatches = trainer_.microBatches();
    result_.seconds = time.count();
    result_.stoppedBy = requestedStop();
    return std::move(result_);
  }

private:
  /// Makes a step, or the micro-batches of a step before a signal.
  Status step() {
    if (options_.accumulate == 0)
      return useBatch([&](const Batch &batch) { return trainer_.step(batch.inputs); });
    while (trainer_.microBatches() < options_.accumulate) {
      if (requestedStop() != 0)
        return Status::ok();
      CGC_TRY(useBatch([&](const Batch &batch) { return trainer_.accumulate(batch.inputs); }));
    }
    return trainer_.update();
  }

  template <class Use> Status useBatch(const Use &use) {
    const Batch &batch = reader_.next();
    const std::string name = fmt::format("the batch of step {}", trainer_.stepNumber() + 1);
    if (!batch.isFinite) {
      if (options_.failOnNan)
        return {Code::Failed,
                fmt::format("{} has a NaN or an infinity; remove the sample, or leave "
                            "--fail-on-nan out",
                            name)};
      if (result_.nonFiniteBatches++ == 0)
        logWarning(name + " has a NaN or an infinity; --fail-on-nan would end the training here");
    }
    return use(batch).withContext(name);
  }

  Status poll() {
    CGC_ASSIGN_OR_RETURN(const auto results, trainer_.poll());
    for (const StepResult &result : results) {
      if (options_.failOnNan && !std::isfinite(result.loss))
        return {Code::Failed,
                fmt::format("the loss of step {} is {}; lower the learning rate, or start from "
                            "an earlier checkpoint",
                            result.step, result.loss)};
      result_.losses.push_back({result.step, result.loss});
      if (result_.losses.size() % options_.logEvery == 0) {
        progress_.begin(fmt::format("step {}, loss {:.6g}", result.step, result.loss));
        CGC_TRY(options_.onLog());
      }
    }
    return Status::ok();
  }

  Status save() {
    std::map<std::string, std::string> notes = options_.notes;
    notes[kBatchNote] = std::to_string(reader_.position());
    return trainer_.save(options_.checkpoint, notes);
  }

  Trainer &trainer_;
  BatchReader &reader_;
  const TrainingOptions &options_;
  Progress &progress_;
  TrainingResult result_;
  std::deque<uint64_t> batches_; ///< Of each step whose batches are in use.
};

} // namespace

Result<TrainingResult> runTraining(Trainer &trainer, BatchReader &reader,
                                   const TrainingOptions &options, Progress &progress) {
  return Run(trainer, reader, options, progress).run();
}

} // namespace cgc::tool
