// The two executors over one enqueue: StreamExecutor launches a bucket's records, GraphExecutor
// replays a CUDA graph captured from the same records.
#pragma once

#include "runtime/exec/bind.h"

#include <vector>

namespace cgc {

/// Enqueues every record. Also the only executor of target cpu, where it runs them before
/// returning.
class StreamExecutor final {
public:
  /// `records` and `provider` (may be null) are borrowed.
  StreamExecutor(const std::vector<BoundRecord> &records, DeviceKind target, OpProvider *provider)
      : records_(&records), target_(target), provider_(provider) {}

  Status run(cudaStream_t stream) { return enqueueAll(*records_, target_, provider_, stream); }

private:
  const std::vector<BoundRecord> *records_;
  DeviceKind target_;
  OpProvider *provider_;
};

/// Replays a captured graph. Target cuda only.
class GraphExecutor final {
public:
  /// Calls `enqueueRun`, which enqueues the records on `stream` (own, non-blocking), three times to
  /// warm up and once to capture, then instantiates and uploads the graph. The provider's
  /// allocations during the capture stay in a pool of this executor. Borrows all but `enqueueRun`.
  static Result<GraphExecutor> capture(const std::function<Status()> &enqueueRun,
                                       OpProvider *provider, cudaStream_t stream);

  Status run(cudaStream_t stream) {
    return cudaStatus(cudaGraphLaunch(exec_.get(), stream), "cannot launch the graph");
  }
  size_t nodes() const { return nodes_; }
  double captureMillis() const { return captureMillis_; }

private:
  /// LibTorch memory that the graph uses; released with the executor.
  struct Pool {
    OpProvider *provider;
    uint64_t token;
  };
  struct ReleasePool {
    void operator()(Pool *pool) const {
      pool->provider->releasePool(pool->token);
      delete pool;
    }
  };
  using PoolHandle = std::unique_ptr<Pool, ReleasePool>;

  static Result<CudaGraph> captureRun(const std::function<Status()> &enqueueRun,
                                      OpProvider *provider, cudaStream_t stream, PoolHandle &pool);

  GraphExecutor() = default;
  PoolHandle pool_; // Outlives the graph that uses it.
  CudaGraphExec exec_;
  size_t nodes_ = 0;
  double captureMillis_ = 0;
};

/// Microseconds that each record takes, [record][run], in `runs` runs one after the other. Target
/// cuda: on `stream` (own, non-blocking), between events inside a replayed graph; the records must
/// have plain edges, because an event between two kernels is one. Target cpu: on the host.
Result<std::vector<std::vector<double>>> profileRecords(const std::vector<BoundRecord> &records,
                                                        DeviceKind target, OpProvider *provider,
                                                        cudaStream_t stream, size_t runs);

} // namespace cgc
