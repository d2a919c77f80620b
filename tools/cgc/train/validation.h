// Validation: the loss of samples that a training does not see.
#pragma once

#include "runtime/train/trainer.h"
#include "tools/cgc/io/tensors.h"
#include "tools/cgc/train/batch_reader.h"

#include <memory>
#include <optional>
#include <vector>

namespace cgc::tool {

/// Runs the entry `evaluate` of a training plan on the whole batches of a dataset.
class Validation final {
public:
  /// The bucket of the entry `evaluate` for the batches of `step`, a bucket of the plan's entry
  /// `step`, or of all `ranks` ranks: a plan of --ranks evaluates the whole batch. Usage if there
  /// is none.
  static Result<const Bucket *> bucketOf(const PlanData &plan, const Bucket &step, int ranks);

  /// For the batches of `evaluate`, the bucketOf `step`, of which `data` has at least one. `plan`
  /// and `data` are borrowed; the batches are in memory as `pinned` says. Usage if the plan cannot;
  /// otherwise fails as BatchReader::create does.
  static Result<Validation> create(const PlanData &plan, const Bucket &step, const Bucket &evaluate,
                                   const Dataset &data, bool pinned);

  /// The mean of the losses of all batches with the states of `trainer`, whose steps it waits for,
  /// and whose states are as before when it returns. None if a signal (requestedStop) ended it
  /// early.
  Result<std::optional<double>> loss(Trainer &trainer);

  /// The samples of loss().
  uint64_t samples() const { return batches_ * batch_; }

private:
  Validation() = default;
  Result<double> batchLoss(Trainer &trainer);

  std::unique_ptr<BatchReader> reader_;
  uint64_t batches_ = 0, batch_ = 0; ///< Batches of a loss, and samples of a batch.
  std::vector<HostTensor> outputs_;
  size_t loss_ = 0;       ///< The output that is the loss.
  bool isRandom_ = false; ///< `evaluate` draws random numbers.
};

} // namespace cgc::tool
