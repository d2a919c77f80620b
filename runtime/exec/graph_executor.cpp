// GraphExecutor: warm-up, capture and instantiation of a CUDA graph.
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
    CGC_TRY(cudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                       "cannot begin the capture"));
    open_ = true;
    return Status::ok();
  }
  Result<CudaGraph> end() {
    open_ = false;
    cudaGraph_t graph = nullptr;
    Status status = cudaStatus(cudaStreamEndCapture(stream_, &graph), "the capture failed");
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

Result<CudaGraph> GraphExecutor::captureRun(const std::function<Status()> &enqueueRun,
                                            OpProvider *provider, cudaStream_t stream,
                                            PoolHandle &pool) {
  if (provider) {
    CGC_ASSIGN_OR_RETURN(const uint64_t token, provider->beginCapture(stream));
    pool.reset(new Pool{provider, token});
  }
  CaptureScope scope(stream);
  const auto record = [&]() -> Result<CudaGraph> {
    CGC_TRY(scope.begin());
    const Status enqueued = enqueueRun();
    Result<CudaGraph> graph = scope.end();
    // cudaStreamEndCapture may succeed although a record failed to enqueue: the graph would lack
    // that record.
    if (!enqueued.isOk())
      return enqueued;
    return graph;
  };
  Result<CudaGraph> graph = record();
  if (provider)
    if (Status ended = provider->endCapture(pool->token); graph.isOk() && !ended.isOk())
      return ended;
  return graph;
}

Status GraphExecutor::warmUp(const std::function<Status()> &enqueueRun, cudaStream_t stream) {
  for (int i = 0; i < kWarmUps; ++i)
    CGC_TRY(enqueueRun().withContext("warm-up"));
  return cudaStatus(cudaStreamSynchronize(stream), "the warm-up failed");
}

Result<GraphExecutor> GraphExecutor::capture(const std::function<Status()> &enqueueRun,
                                             OpProvider *provider, cudaStream_t stream) {
  const auto start = std::chrono::steady_clock::now();
  GraphExecutor executor;
  Result<CudaGraph> captured = captureRun(enqueueRun, provider, stream, executor.pool_);
  if (!captured.isOk())
    return captured.status().withContext("capture");
  const CudaGraph graph = *std::move(captured);
  CGC_TRY(cudaStatus(cudaGraphGetNodes(graph.get(), nullptr, &executor.nodes_),
                     "cannot look at the captured graph"));
  if (executor.nodes_ == 0)
    return Status(Code::Device, "the captured graph is empty: its records ran on another stream");
  cudaGraphExec_t exec = nullptr;
  CGC_TRY(cudaStatus(cudaGraphInstantiate(&exec, graph.get(), 0), "cannot instantiate the graph"));
  executor.exec_.reset(exec);
  CGC_TRY(cudaStatus(cudaGraphUpload(exec, stream), "cannot upload the graph"));
  CGC_TRY(cudaStatus(cudaStreamSynchronize(stream), "cannot upload the graph"));
  executor.captureMillis_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return executor;
}

} // namespace cgc
