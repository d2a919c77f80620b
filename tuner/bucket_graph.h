// BucketGraphs: one bucket with memory of its own, captured and timed repeatedly with other
// records.
#pragma once

#include "runtime/exec/branch_streams.h"
#include "runtime/exec/engine_impl.h"
#include "runtime/exec/executors.h"

#include <memory>

namespace cgc::tuner {

/// A captured graph of the bucket, and the bound records that it launches.
struct CapturedBucket {
  std::vector<BoundRecord> records;
  GraphExecutor graph;
};

/// The states of a plan on the GPU, with which all its buckets are timed.
class PlanStates final {
public:
  /// The states with their first values.
  static Result<PlanStates> create(const Plan &plan);

  const std::vector<std::byte *> &addresses() const { return addresses_; }
  /// Gives each state its first value again.
  Status reset(cudaStream_t stream) const;

private:
  Buffer values_, first_;
  std::vector<std::byte *> addresses_; ///< Of each state in `values_`.
};

class BucketGraphs final {
public:
  /// Borrows `engine`, `cublasLt` and `states`; the second may be null. Copies `bucket`. Floating
  /// inputs get random values, others zeros.
  static Result<BucketGraphs> create(const Engine::Impl &engine, const CublasLt *cublasLt,
                                     const PlanStates &states, const Bucket &bucket);

  /// Binds and captures these records instead of the bucket's own, with programmatic edges. An
  /// error if a bind function refuses one. The records run in order, so that the time of each
  /// counts; with `inBranches` they run as a context runs them.
  Result<std::unique_ptr<CapturedBucket>> capture(const std::vector<LaunchRecord> &records,
                                                  bool inBranches = false);
  /// Microseconds of a replay: the mean of consecutive replays that take about 5 ms. The states
  /// have their first values before them.
  Result<double> time(CapturedBucket &captured);
  /// The device address of a tensor of the bucket.
  void *address(TensorId id) const;

private:
  BucketGraphs(const Engine::Impl &engine, const CublasLt *cublasLt, const PlanStates &states,
               const Bucket &bucket)
      : engine_(engine), cublasLt_(cublasLt), states_(states), bucket_(bucket) {}
  Result<double> timeRuns(CapturedBucket &captured, int runs);

  const Engine::Impl &engine_;
  const CublasLt *cublasLt_;
  const PlanStates &states_;
  Bucket bucket_;
  CudaStream stream_;
  BranchStreams branches_;
  CudaEvent start_, end_;
  Buffer arena_;
  BucketMemory memory_;
};

} // namespace cgc::tuner
