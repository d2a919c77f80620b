// Context: runs in a stream that the caller captures, and the graphs that it lends.
#include "runtime/base/no_throw.h"
#include "runtime/exec/context_impl.h"

namespace cgc {

Status Context::Impl::checkLaunchedByCaller() const {
  return sharesArena() ? Status(Code::Usage,
                                "the context shares the arena of a memory pool, which cannot put "
                                "the launches of a caller's graph in order; give the context "
                                "ContextOptions::ownArena")
                       : Status::ok();
}

Status Context::Impl::runCaptured(size_t entry, std::span<const BucketRun> runs,
                                  std::span<const TensorView> inputs,
                                  std::span<const TensorView> outputs, cudaStream_t callers) {
  CGC_TRY(checkLaunchedByCaller());
  const std::vector<Bucket> &of = engine.plan.data().entries[entry].buckets;
  for (const BucketRun &run : runs) {
    const BoundBucket *const bound = buckets[entry][run.bucket].get();
    if (!bound)
      return {Code::Usage, "bucket " + std::to_string(run.bucket) +
                               " is not prepared, which is not possible while the stream is being "
                               "captured; call Context::prepare before"};
    if (hasHostCalls(of[run.bucket]))
      return {Code::Usage, "the stream is being captured, and a CUDA graph cannot call the host "
                           "functions of this entry; run it on another stream"};
    if (engine.provider && !std::holds_alternative<GraphExecutor>(bound->executor))
      return {Code::Unsupported,
              "LibTorch's records cannot be captured in a caller's graph without "
              "the graph executor, which keeps their memory"};
  }
  CGC_TRY(captureOrder.follow(callers));
  for (const BucketRun &run : runs)
    CGC_TRY(captureBucket({*buckets[entry][run.bucket], of[run.bucket], run.rows, inputs, outputs},
                          callers));
  return captureOrder.mark(callers);
}

Result<CudaGraph> Context::Impl::patchedGraph(BoundBucket &bound, IoAddresses &at) const {
  const RelaxedCaptureMode relaxed;
  CGC_ASSIGN_OR_RETURN(AddressPatch::Binding binding, bound.patch->bind(bound.wanted));
  if (binding.at == bound.patch->own())
    return CudaGraph();
  cudaGraph_t clone = nullptr;
  CGC_TRY(CGC_CUDA(cudaGraphClone(&clone, std::get<GraphExecutor>(bound.executor).graph()),
                   "cannot copy the graph"));
  CudaGraph owner(clone);
  if (!bound.patch->apply(binding, clone).isOk())
    return CudaGraph(); // The tensors are copied.
  at = std::move(binding.at);
  return owner;
}

Status Context::Impl::captureBucket(const BucketCall &call, cudaStream_t on) {
  BoundBucket &bound = call.bound;
  IoAddresses at;
  CudaGraph patched;
  if (bound.sets && findWanted(call)) {
    CGC_ASSIGN_OR_RETURN(patched, patchedGraph(bound, at));
  }
  // Other runs may come between two replays, and replays between two other runs.
  const auto forgetUsedRows = [&] {
    for (size_t i = 0; i < call.bucket.inputs.size(); ++i)
      if (const IoTensor &input = call.bucket.inputs[i]; input.batchDim != kNoBatchDim)
        bound.usedRows[i] = input.sizes[input.batchDim];
  };
  forgetUsedRows();
  CGC_TRY(copyInputs(call, at, on));
  forgetUsedRows();
  CGC_TRY(enqueueChecks(call, at, on).status());
  CGC_TRY(poison(bound, on));
  if (const auto *graph = std::get_if<GraphExecutor>(&bound.executor))
    CGC_TRY(addChildGraph(on, patched ? patched.get() : graph->graph()));
  else
    CGC_TRY(std::get<StreamExecutor>(bound.executor).run(on));
  return copyOutputs(call, at, on);
}

Result<TensorView> Context::Impl::staticBuffer(std::string_view entry, size_t bucket, size_t index,
                                               bool isInput) {
  CGC_ASSIGN_OR_RETURN(BoundBucket *const bound, use(entry, bucket));
  const Bucket &of = engine.plan.data().findEntry(entry)->buckets[bucket];
  const std::vector<IoTensor> &tensors = isInput ? of.inputs : of.outputs;
  if (index >= tensors.size())
    return Status(Code::Usage, "entry '" + std::string(entry) + "' has " +
                                   std::to_string(tensors.size()) +
                                   (isInput ? " inputs" : " outputs") + ", none of index " +
                                   std::to_string(index));
  // The caller may write all rows.
  if (isInput && tensors[index].batchDim != kNoBatchDim)
    bound->usedRows[index] = tensors[index].sizes[tensors[index].batchDim];
  const Buffer &buffer = (isInput ? bound->memory.inputs : bound->memory.outputs)[index];
  return TensorView{buffer.data(), tensors[index].dtype, device, tensors[index].sizes, {}};
}

Result<TensorView> Context::inputBuffer(std::string_view entry, size_t bucket, size_t index) {
  return noThrow([&] { return impl_->staticBuffer(entry, bucket, index, /*isInput=*/true); });
}

Result<TensorView> Context::outputBuffer(std::string_view entry, size_t bucket, size_t index) {
  return noThrow([&] { return impl_->staticBuffer(entry, bucket, index, /*isInput=*/false); });
}

Result<void *> Context::graph(std::string_view entry, size_t bucket) {
  return noThrow([&]() -> Result<void *> {
    CGC_ASSIGN_OR_RETURN(BoundBucket *const bound, impl_->use(entry, bucket));
    CGC_TRY(impl_->checkLaunchedByCaller());
    const auto *const graph = std::get_if<GraphExecutor>(&bound->executor);
    if (!graph)
      return Status(Code::Unsupported, "bucket " + std::to_string(bucket) + " of entry '" +
                                           std::string(entry) +
                                           "' has no graph: it needs a plan with target cuda, "
                                           "ExecutorKind::Graph, and an output that is not empty");
    return static_cast<void *>(graph->graph());
  });
}

} // namespace cgc
