// RequestTable: finds the buckets that run a request.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/session/batch_split.h"

#include <span>
#include <vector>

namespace cgc {

/// What a request needs: one bucket whose shapes it has, rows that `split` distributes, or the
/// fallback model.
struct Request {
  size_t entry = 0;                  ///< Its index in the plan.
  size_t bucket = 0;                 ///< Without `split`.
  const BatchSplit *split = nullptr; ///< Owned by the table.
  int64_t rows = 0;                  ///< Of a batch; 0 for inputs without batch dimension.
  bool isFallback = false; ///< No bucket takes it; then the members behind `entry` mean nothing.

  /// Replaces `runs` by the runs of this request.
  void runs(std::vector<BucketRun> &runs) const;
};

/// The buckets of each entry of a plan, grouped by the sizes that are no batch. Immutable.
class RequestTable final {
public:
  /// `plan` is borrowed and must outlive the table. A batch has `maxBatch` rows at most. Without
  /// `hasFallback`, a request that no bucket takes does not fit.
  RequestTable(const PlanData &plan, int64_t maxBatch, bool hasFallback = false);

  /// Finds the buckets for a request and checks its views against them, including indices in host
  /// memory. `device` is where the plan runs. Usage if the request does not fit. Allocates nothing
  /// if it does.
  Result<Request> find(std::string_view entry, std::span<const TensorView> inputs,
                       std::span<const TensorView> outputs, DeviceKind device) const;

  /// The buckets that a batch of `batch` rows of `entry` takes, for each group of buckets; all
  /// buckets for an entry that does not split batches. Usage if there is no such entry or batch.
  Result<std::vector<size_t>> bucketsFor(std::string_view entry, int64_t batch) const;

  /// The one bucket that runs `batch` rows of `entry`, with rows behind them if need be: the
  /// smallest if rows are independent, else that of `batch` rows, which are dimension 0 of the
  /// first input if the batch dimension is not known. `batch` is ignored if no input has a
  /// dimension. `split` is null. Usage if there is no such entry or bucket, or if several fit that
  /// differ in other sizes.
  Result<Request> findBucketFor(std::string_view entry, int64_t batch) const;

  /// The batch of a bucket that has one.
  int64_t batch(size_t entry, size_t bucket) const;

private:
  /// Buckets that differ in the batch only.
  struct Group {
    const Bucket *largest;
    BatchSplit split;
  };
  /// The group and the rows of `inputs`; null if no group fits. Usage if their batches differ.
  struct Match {
    const Group *group = nullptr;
    int64_t rows = 0;
  };
  Result<Match> match(const Entry &entry, std::span<const TensorView> inputs) const;
  Status checkBatch(int64_t rows) const;
  /// Checks what can be checked of a request for the fallback model: everything but the sizes. An
  /// index must be below the least bound of its input.
  Status checkForFallback(const Entry &entry, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs, DeviceKind device) const;

  const PlanData &plan_;
  const int64_t maxBatch_;
  const bool hasFallback_;
  std::vector<std::vector<Group>> groups_; ///< By entry; none if rows are not independent.
};

/// Usage if a view in `outputs` shares memory with another view. All views are dense.
Status checkOverlaps(std::span<const TensorView> inputs, std::span<const TensorView> outputs);

} // namespace cgc
