// runTraining: enqueues steps, reads their losses when they are there, and writes checkpoints.
#include "tools/cgc/train/training_run.h"

#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

namespace cgc::tool {
namespace {

/// The steps between two questions whether a rank stops, each of which waits for all ranks.
constexpr uint64_t kStopPeriod = 20;

class Run {
public:
  Run(Trainer &trainer, BatchReader &reader, const TrainingOptions &options, Progress &progress)
      : trainer_(trainer), reader_(reader), options_(options), progress_(progress) {}

  Result<TrainingResult> run() {
    Status status = makeSteps();
    if (status.isOk())
      status = finish();
    if (!status.isOk())
      return withCheckpoint(status);
    result_.microBatches = trainer_.microBatches();
    if (!options_.stops)
      result_.stoppedBy = requestedStop(); // Also one that came after the last step.
    return std::move(result_);
  }

private:
  Status makeSteps() {
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < options_.steps; ++i) {
      CGC_ASSIGN_OR_RETURN(result_.stoppedBy, signalBefore(i));
      if (result_.stoppedBy != 0)
        break;
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
      if (isDue(options_.validateEvery))
        CGC_TRY(validate());
      if (isDue(options_.checkpointEvery))
        CGC_TRY(save());
    }
    CGC_TRY(trainer_.wait());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    result_.seconds = (time - notSteps_).count();
    return poll();
  }

  /// The signal that ends the training before step `i` of this run, also if another rank got it; 0
  /// for none.
  Result<int> signalBefore(uint64_t i) const {
    if (!options_.stops)
      return requestedStop();
    return i > 0 && i % std::min(options_.logEvery, kStopPeriod) == 0 ? options_.stops() : 0;
  }

  /// Validates and saves the last step unless that has been done.
  Status finish() {
    if (options_.validation && validated_ != trainer_.stepNumber() && result_.stoppedBy == 0)
      CGC_TRY(validate());
    return options_.checkpoint.empty() || isSaved() ? Status::ok() : save();
  }

  bool isSaved() const { return saved_ == trainer_.stepNumber() && trainer_.microBatches() == 0; }

  /// Whether the last step is complete and its number a multiple of `every`, which is not 0.
  bool isDue(uint64_t every) const {
    return every != 0 && trainer_.microBatches() == 0 && trainer_.stepNumber() % every == 0;
  }

  /// Makes a step, or the micro-batches of a step before a signal.
  Status step() {
    if (options_.accumulate == 0)
      return useBatch([&](const Batch &batch) { return trainer_.step(batch.inputs); });
    while (trainer_.microBatches() < options_.accumulate) {
      if (requestedStop() != 0 && !options_.stops)
        return Status::ok();
      CGC_TRY(useBatch([&](const Batch &batch) { return trainer_.accumulate(batch.inputs); }));
    }
    return trainer_.update();
  }

  template <class Use> Status useBatch(const Use &use) {
    const Batch &batch = reader_.next();
    options_.onBatch(reader_.position());
    const std::string name = fmt::format("the batch of step {}", trainer_.stepNumber() + 1);
    const std::string own = options_.rank ? fmt::format("rank {}: {}", *options_.rank, name) : name;
    if (!batch.isFinite) {
      if (options_.failOnNan)
        return {Code::Failed,
                fmt::format("{} has a NaN or an infinity; remove the sample, or leave "
                            "--fail-on-nan out",
                            name)};
      if (result_.nonFiniteBatches++ == 0)
        logWarning(own + " has a NaN or an infinity; --fail-on-nan would end the training here");
    }
    CGC_TRY(use(batch).withContext(name));
    position_ = reader_.position();
    return Status::ok();
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

  Status validate() {
    CGC_TRY(trainer_.wait()); // So that their time is that of steps.
    CGC_TRY(poll());
    const auto start = std::chrono::steady_clock::now();
    CGC_ASSIGN_OR_RETURN(const std::optional<double> loss, options_.validation->loss(trainer_));
    notSteps_ += std::chrono::steady_clock::now() - start;
    validated_ = trainer_.stepNumber();
    if (!loss)
      return Status::ok();
    result_.validation.push_back({validated_, *loss});
    progress_.show(fmt::format("step {}, validation loss {:.6g}", validated_, *loss));
    return Status::ok();
  }

  Status save() {
    std::map<std::string, std::string> notes = options_.notes;
    notes[kBatchNote] = std::to_string(position_);
    CGC_TRY(trainer_.save(options_.checkpoint, notes));
    saved_ = trainer_.stepNumber();
    return Status::ok();
  }

  /// Whether other ranks hold states, and would have to make the call that saves them. They do not
  /// know of a failure of this rank.
  bool needsOtherRanks() const {
    return options_.stops && std::ranges::any_of(trainer_.plan().data().states, [](const State &s) {
             return s.shard.has_value();
           });
  }

  /// The status of a training that failed: writes a checkpoint of the steps before the failure, if
  /// their states are whole and finite, and adds to the message which checkpoint there is.
  Status withCheckpoint(const Status &failure) {
    if (options_.checkpoint.empty() || options_.rank.value_or(0) != 0)
      return failure;
    if (position_ != first_ && !isSaved() && !needsOtherRanks())
      (void)save(); // Where it cannot be written, the one before stays.
    return {failure.code(),
            failure.message() +
                (saved_ == kNone ? fmt::format("; nothing was written to '{}'", options_.checkpoint)
                                 : fmt::format("; the checkpoint '{}' is that of step {}",
                                               options_.checkpoint, saved_))};
  }

  Trainer &trainer_;
  BatchReader &reader_;
  const TrainingOptions &options_;
  Progress &progress_;
  TrainingResult result_;
  std::deque<uint64_t> batches_; ///< Of each step whose batches are in use.
  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t saved_ = kNone, validated_ = kNone; ///< The last steps that were.
  const uint64_t first_ = reader_.position();  ///< The number of the first batch.
  uint64_t position_ = first_;                 ///< The number of the batch after the last used one.
  std::chrono::duration<double> notSteps_{};   ///< The time of validation.
};

} // namespace

Result<TrainingResult> runTraining(Trainer &trainer, BatchReader &reader,
                                   const TrainingOptions &options, Progress &progress) {
  return Run(trainer, reader, options, progress).run();
}

} // namespace cgc::tool
