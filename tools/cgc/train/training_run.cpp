// runTraining: enqueues steps, reads their losses when they are there, and writes checkpoints.
#include "tools/cgc/train/training_run.h"

#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/signals.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

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
      CGC_TRY(step());
      // The trainer has waited for all steps but the last kStepsInFlight.
      if (i >= kStepsInFlight)
        reader_.release();
      CGC_TRY(poll());
      if (options_.checkpointEvery != 0 && trainer_.stepNumber() % options_.checkpointEvery == 0) {
        CGC_TRY(save());
        saved = trainer_.stepNumber();
      }
    }
    CGC_TRY(trainer_.wait());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    CGC_TRY(poll());
    if (!options_.checkpoint.empty() && saved != trainer_.stepNumber())
      CGC_TRY(save());
    result_.seconds = time.count();
    result_.stoppedBy = requestedStop();
    return std::move(result_);
  }

private:
  Status step() {
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
    return trainer_.step(batch.inputs).withContext(name);
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

  Status save() { return trainer_.save(options_.checkpoint, options_.notes); }

  Trainer &trainer_;
  BatchReader &reader_;
  const TrainingOptions &options_;
  Progress &progress_;
  TrainingResult result_;
};

} // namespace

Result<TrainingResult> runTraining(Trainer &trainer, BatchReader &reader,
                                   const TrainingOptions &options, Progress &progress) {
  return Run(trainer, reader, options, progress).run();
}

} // namespace cgc::tool
