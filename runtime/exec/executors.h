// The executors of a bucket: StreamExecutor launches its records, GraphExecutor replays a CUDA
// graph captured from the same records; SplitExecutor (split_executor.h) replays several.
#pragma once

#include "runtime/exec/bind.h"
#include "runtime/exec/branch_streams.h"
#include "runtime/exec/engine.h"

#include <vector>

namespace cgc {

/// Enqueues every record on a stream. On the host, where it is the only executor, it runs each
/// record before returning.
class StreamExecutor final {
public:
  /// `records` and `provider` (may be null) are borrowed and must outlive the executor.
  StreamExecutor(const std::vector<BoundRecord> &records, DeviceKind device, OpProvider *provider)
      : records_(&records), device_(device), provider_(provider) {}

  Status run(cudaStream_t stream) { return enqueueAll(*records_, device_, provider_, stream); }

private:
  const std::vector<BoundRecord> *records_;
  DeviceKind device_;
  OpProvider *provider_;
};

/// Replays a captured CUDA graph. On a GPU only.
class GraphExecutor final {
public:
  /// Calls `enqueueRun`, which enqueues the records on `stream`, so often that a capture of it
  /// afterwards initializes nothing, and waits for the work.
  static Status warmUp(const std::function<Status()> &enqueueRun, cudaStream_t stream);
  /// Captures a call of `enqueueRun`, which enqueues the records on `stream`, then instantiates and
  /// uploads the graph. `stream` must be a non-blocking stream of the context's own. LibTorch's
  /// allocations during the capture come from a pool that lives as long as the executor. `provider`
  /// is borrowed and must outlive the executor. `branches` are further streams on which
  /// `enqueueRun` enqueues, between a fork from `stream` and a join.
  static Result<GraphExecutor> capture(const std::function<Status()> &enqueueRun,
                                       OpProvider *provider, cudaStream_t stream,
                                       std::span<const cudaStream_t> branches = {});

  Status run(cudaStream_t stream) {
    return CGC_CUDA(cudaGraphLaunch(exec_.get(), stream), "cannot launch the graph");
  }
  /// The graph as it was captured. Borrowed: it lives as long as the executor.
  cudaGraph_t graph() const { return graph_.get(); }
  /// Nodes in the graph.
  size_t nodes() const { return nodes_; }
  /// Milliseconds that capture, instantiation and upload took.
  double captureMillis() const { return captureMillis_; }

private:
  /// A pool of LibTorch memory that the graph uses, for one stream. Released with the executor.
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

  /// Directs LibTorch's allocations for `stream` to a new pool.
  Status beginPool(OpProvider &provider, cudaStream_t stream);
  /// Ends that for all pools. Returns the first error.
  Status endPools();
  Result<CudaGraph> captureRun(const std::function<Status()> &enqueueRun, OpProvider *provider,
                               cudaStream_t stream, std::span<const cudaStream_t> branches);

  GraphExecutor() = default;
  std::vector<PoolHandle> pools_; // Declared first, so that it outlives the graph.
  CudaGraph graph_;
  CudaGraphExec exec_;
  size_t nodes_ = 0;
  double captureMillis_ = 0;
};

/// The microseconds that each record takes, [record][run], in `runs` consecutive runs. On a GPU:
/// measured by events inside a replayed graph on `stream`, which is the context's own non-blocking
/// stream. The records must have plain edges, because an event between two kernels makes their edge
/// plain. On the host: measured by its clock.
Result<std::vector<std::vector<double>>> profileRecords(const std::vector<BoundRecord> &records,
                                                        DeviceKind device, OpProvider *provider,
                                                        cudaStream_t stream, size_t runs);

/// When each record runs, [record][run], in `runs` consecutive runs: on a GPU those of a replayed
/// graph on `stream` with its `branches`, whose records must have plain edges; on the host one
/// record after another.
Result<std::vector<std::vector<RecordSpan>>> spansOfRecords(const std::vector<BoundRecord> &records,
                                                            DeviceKind device, OpProvider *provider,
                                                            const BranchStreams &branches,
                                                            cudaStream_t stream, size_t runs);

} // namespace cgc
