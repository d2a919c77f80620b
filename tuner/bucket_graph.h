// BucketGraphs: one bucket in memory of its own, captured again and again with other records, and
// timed.
#pragma once

#include "runtime/exec/engine_impl.h"
#include "runtime/exec/executors.h"

#include <memory>

namespace cgc::tuner {

/// A captured graph of the bucket.
struct CapturedBucket {
  std::vector<BoundRecord> records;
  GraphExecutor graph;
};

class BucketGraphs final {
public:
  /// Borrows everything. Floating inputs are random, others zero.
  static Result<BucketGraphs> create(const Engine::Impl &engine, const CublasLt *cublasLt,
                                     const Bucket &bucket);

  /// Binds and captures these records instead of the bucket's own, with programmatic edges.
  Result<std::unique_ptr<CapturedBucket>> capture(const std::vector<LaunchRecord> &records);
  /// Microseconds of a replay: the mean of as many, one behind the other, as take about 5 ms.
  Result<double> time(CapturedBucket &captured);
  /// Where a tensor of the bucket lies.
  void *address(TensorId id) const;

private:
  BucketGraphs(const Engine::Impl &engine, const CublasLt *cublasLt, const Bucket &bucket)
      : engine_(engine), cublasLt_(cublasLt), bucket_(bucket) {}
  Result<double> timeRuns(CapturedBucket &captured, int runs);

  const Engine::Impl &engine_;
  const CublasLt *cublasLt_;
  Bucket bucket_;
  CudaStream stream_;
  CudaEvent start_, end_;
  Buffer arena_;
  BucketMemory memory_;
};

} // namespace cgc::tuner
