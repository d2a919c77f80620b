// GraphExecutor: warm-up, capture and instantiation of a CUDA graph.
#include "runtime/base/no_throw.h"
#include "runtime/exec/executors.h"

#include <chrono>

namespace cgc {
namespace {

constexpr int kWarmUps = 3;

/// A capture on a stream, ended in any case: a stream that stays in capture mode could never be
/// used again.
class CaptureScope final {
public:
  explicit CaptureScope(cudaStream_t stream) : stream_(stream) {}
  CaptureScope(const CaptureScope &) = delete;
  CaptureScope &operator=(const CaptureScope &) = delete;
  ~CaptureScope() {
    if (open_)
      (void)end();
  }
  Status begin() {
    // Thread-local mode: CUDA calls of other threads cannot invalidate this capture.
    CGC_TRY(CGC_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                     "cannot begin the capture"));
    open_ = true;
    return Status::ok();
  }
  Result<CudaGraph> end() {
    open_ = false;
    cudaGraph_t graph = nullptr;
    Status status = CGC_CUDA(cudaStreamEndCapture(stream_, &graph), "the capture failed");
    CudaGraph owner(graph);
    if (!status.isOk())
      return status;
    return owner;
  }

private:
  cudaStream_t stream_;
  bool open_ = false;
};

} // namespace

Status GraphExecutor::beginPool(OpProvider &provider, cudaStream_t stream) {
  // Allocated first: if that fails, no capture has begun.
  auto owned = std::make_unique<Pool>(Pool{&provider, 0});
  pools_.reserve(pools_.size() + 1);
  CGC_ASSIGN_OR_RETURN(owned->token, provider.beginCapture(stream));
  pools_.emplace_back(owned.release());
  return Status::ok();
}

Status GraphExecutor::endPools() {
  Status first;
  for (const PoolHandle &pool : pools_)
    if (Status ended = pool->provider->endCapture(pool->token); first.isOk())
      first = std::move(ended);
  return first;
}

Result<CudaGraph> GraphExecutor::captureRun(const std::function<Status()> &enqueueRun,
                                            OpProvider *provider, cudaStream_t stream,
                                            std::span<const cudaStream_t> branches) {
  CaptureScope scope(stream);
  const auto record = [&]() -> Result<CudaGraph> {
    if (provider) {
      CGC_TRY(beginPool(*provider, stream));
      for (cudaStream_t branch : branches)
        CGC_TRY(beginPool(*provider, branch));
    }
    CGC_TRY(scope.begin());
    const Status enqueued = enqueueRun();
    Result<CudaGraph> graph = scope.end();
    // cudaStreamEndCapture may succeed although a record failed to enqueue: the graph would lack
    // that record.
    if (!enqueued.isOk())
      return enqueued;
    return graph;
  };
  // The provider's captures end also if there is no host memory.
  Result<CudaGraph> graph = noThrow(record);
  if (Status ended = endPools(); graph.isOk() && !ended.isOk())
    return ended;
  return graph;
}

Status GraphExecutor::warmUp(const std::function<Status()> &enqueueRun, cudaStream_t stream) {
  for (int i = 0; i < kWarmUps; ++i)
    CGC_TRY(enqueueRun().withContext("warm-up"));
  return CGC_CUDA(cudaStreamSynchronize(stream), "the warm-up failed");
}

Result<GraphExecutor> GraphExecutor::capture(const std::function<Status()> &enqueueRun,
                                             OpProvider *provider, cudaStream_t stream,
                                             std::span<const cudaStream_t> branches) {
  const auto start = std::chrono::steady_clock::now();
  GraphExecutor executor;
  Result<CudaGraph> captured = executor.captureRun(enqueueRun, provider, stream, branches);
  if (!captured.isOk())
    return captured.status().withContext("capture");
  executor.graph_ = *std::move(captured);
  CGC_TRY(CGC_CUDA(cudaGraphGetNodes(executor.graph(), nullptr, &executor.nodes_),
                   "cannot look at the captured graph"));
  if (executor.nodes_ == 0)
    return Status(Code::Device, "the captured graph is empty: its records ran on another stream");
  cudaGraphExec_t exec = nullptr;
  CGC_TRY(
      CGC_CUDA(cudaGraphInstantiate(&exec, executor.graph(), 0), "cannot instantiate the graph"));
  executor.exec_.reset(exec);
  CGC_TRY(CGC_CUDA(cudaGraphUpload(exec, stream), "cannot upload the graph"));
  CGC_TRY(CGC_CUDA(cudaStreamSynchronize(stream), "cannot upload the graph"));
  executor.captureMillis_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return executor;
}

} // namespace cgc
