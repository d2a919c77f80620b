// Context: runs and profiles buckets.
#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/context_impl.h"

#include <algorithm>
#include <cstring>

namespace cgc {
namespace {

/// Marks a context as busy for its lifetime, unless another thread already has.
class BusyScope final {
public:
  explicit BusyScope(std::atomic<bool> &busy) : busy_(busy), entered_(!busy.exchange(true)) {}
  BusyScope(const BusyScope &) = delete;
  BusyScope &operator=(const BusyScope &) = delete;
  ~BusyScope() {
    if (entered_)
      busy_ = false;
  }
  bool entered() const { return entered_; }

private:
  std::atomic<bool> &busy_;
  bool entered_;
};

Status busyStatus() {
  return {Code::Usage,
          "another thread is running this context; give each thread a context of its own"};
}

} // namespace

Status Context::Impl::inTurn(cudaStream_t on, const std::function<Status()> &body) {
  const std::lock_guard turn(arena->turn());
  if (device == DeviceKind::Cpu)
    return body();
  CGC_TRY(arena->waitForLastRun(on));
  Status status = body();
  // Work that failed partway may also be in flight.
  Status marked = arena->markDone(on);
  return status.isOk() ? marked : status;
}

Status Context::Impl::fill(const Block &to, int value, uint64_t width, uint64_t blocks,
                           cudaStream_t on) {
  if (width == 0 || blocks == 0)
    return Status::ok();
  if (device == DeviceKind::Cuda)
    return cudaStatus(blocks == 1 ? cudaMemsetAsync(to.data, value, width, on)
                                  : cudaMemset2DAsync(to.data, to.pitch, value, width, blocks, on),
                      "cannot fill memory");
  for (uint64_t i = 0; i < blocks; ++i)
    std::memset(to.data + i * to.pitch, value, width);
  return Status::ok();
}

Status Context::Impl::copy(const Block &to, const Block &from, uint64_t width, uint64_t blocks,
                           cudaStream_t on) {
  if (width == 0 || blocks == 0) // Either pointer may be null.
    return Status::ok();
  if (device == DeviceKind::Cpu) {
    for (uint64_t i = 0; i < blocks; ++i)
      std::memmove(to.data + i * to.pitch, from.data + i * from.pitch, width);
    return Status::ok();
  }
  const cudaMemcpyKind kind = from.device == DeviceKind::Cpu ? cudaMemcpyHostToDevice
                              : to.device == DeviceKind::Cpu ? cudaMemcpyDeviceToHost
                                                             : cudaMemcpyDeviceToDevice;
  return cudaStatus(blocks == 1 ? cudaMemcpyAsync(to.data, from.data, width, kind, on)
                                : cudaMemcpy2DAsync(to.data, to.pitch, from.data, from.pitch, width,
                                                    blocks, kind, on),
                    "cannot copy");
}

Status Context::Impl::copyIn(BoundBucket &bound, const Bucket &bucket, size_t input,
                             const std::optional<RowRange> &rows, const TensorView &view,
                             cudaStream_t on) {
  const IoTensor &tensor = bucket.inputs[input];
  const Buffer &buffer = bound.memory.inputs[input];
  auto *const from = static_cast<std::byte *>(view.data);
  if (tensor.batchDim == kNoBatchDim || !rows) {
    if (tensor.batchDim != kNoBatchDim)
      bound.usedRows[input] = tensor.sizes[tensor.batchDim];
    return copy({buffer.data(), device, buffer.size()}, {from, view.device, buffer.size()},
                buffer.size(), 1, on);
  }
  const auto [blocks, rowBytes] = rowLayout(tensor);
  const uint64_t pitch = rowBytes * tensor.sizes[tensor.batchDim];
  const int64_t used =
      std::exchange(bound.usedRows[input], std::max(bound.usedRows[input], rows->count));
  CGC_TRY(copy({buffer.data(), device, pitch},
               {from + rowBytes * rows->begin, view.device, rowBytes * rows->total},
               rowBytes * rows->count, blocks, on));
  if (used > rows->count)
    CGC_TRY(fill({buffer.data() + rowBytes * rows->count, device, pitch}, 0,
                 rowBytes * (used - rows->count), blocks, on));
  bound.usedRows[input] = rows->count;
  return Status::ok();
}

Status Context::Impl::copyOut(BoundBucket &bound, const Bucket &bucket, size_t output,
                              const std::optional<RowRange> &rows, const TensorView &view,
                              cudaStream_t on) {
  const IoTensor &tensor = bucket.outputs[output];
  const Buffer &buffer = bound.memory.outputs[output];
  auto *const to = static_cast<std::byte *>(view.data);
  if (tensor.batchDim == kNoBatchDim || !rows)
    return copy({to, view.device, buffer.size()}, {buffer.data(), device, buffer.size()},
                buffer.size(), 1, on);
  const auto [blocks, rowBytes] = rowLayout(tensor);
  return copy({to + rowBytes * rows->begin, view.device, rowBytes * rows->total},
              {buffer.data(), device, rowBytes * tensor.sizes[tensor.batchDim]},
              rowBytes * rows->count, blocks, on);
}

Status Context::Impl::launch(BoundBucket &bound, cudaStream_t on) {
  if (options.poisonArena) {
    CGC_TRY(fill({arena->data(), device, arena->size()}, 0xff, arena->size(), 1, on));
    for (const std::vector<Buffer> *buffers : {&bound.parts, &bound.memory.outputs})
      for (const Buffer &buffer : *buffers)
        CGC_TRY(fill(buffer, 0xff, on));
  }
  if (auto *graph = std::get_if<GraphExecutor>(&bound.executor))
    return graph->run(on);
  return withThreads([&] { return std::get<StreamExecutor>(bound.executor).run(on); });
}

Status Context::Impl::withThreads(const std::function<Status()> &body) {
  return options.threads > 0 && engine.provider
             ? engine.provider->withThreads(options.threads, body)
             : body();
}

Status Context::Impl::run(size_t entry, std::span<const BucketRun> runs,
                          std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                          cudaStream_t callers) {
  const BusyScope scope(busy);
  if (!scope.entered())
    return busyStatus();
  CGC_TRY(engine.fault.check());
  const DeviceGuard guard(engine.device);
  for (const BucketRun &run : runs)
    CGC_TRY(prepare(entry, run.bucket));
  Status status = runBuckets(entry, runs, inputs, outputs, callers);
  if (device == DeviceKind::Cuda)
    status = engine.fault.note(std::move(status), stream.get());
  return status.isOk()
             ? status
             : status.withContext("entry '" + engine.plan.data().entries[entry].name + "'");
}

Status Context::Impl::runBuckets(size_t entry, std::span<const BucketRun> runs,
                                 std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs, cudaStream_t callers) {
  const cudaStream_t on = callers ? callers : stream.get();
  const auto enqueue = [&]() -> Status {
    for (const BucketRun &run : runs)
      CGC_TRY(enqueueBucket(*buckets[entry][run.bucket],
                            engine.plan.data().entries[entry].buckets[run.bucket], run.rows, inputs,
                            outputs, on));
    return Status::ok();
  };
  CGC_TRY(inTurn(on, std::ref(enqueue)));
  return callers || device == DeviceKind::Cpu
             ? Status::ok()
             : cudaStatus(cudaStreamSynchronize(on), "the run failed");
}

Result<std::vector<std::vector<double>>> Context::Impl::profileBucket(BoundBucket &bound,
                                                                      size_t runs) {
  makePlainEdges(bound.records);
  std::vector<std::vector<double>> times;
  const auto profile = [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(
        times, profileRecords(bound.records, device, engine.provider, stream.get(), runs));
    return Status::ok();
  };
  const Status profiled = inTurn(stream.get(), [&] { return withThreads(profile); });
  if (options.programmaticEdges)
    makeProgrammaticEdges(bound.records);
  CGC_TRY(profiled);
  return times;
}

Status Context::Impl::enqueueBucket(BoundBucket &bound, const Bucket &bucket,
                                    const std::optional<RowRange> &rows,
                                    std::span<const TensorView> inputs,
                                    std::span<const TensorView> outputs, cudaStream_t on) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status copied = copyIn(bound, bucket, i, rows, inputs[i], on); !copied.isOk())
      return copied.withContext("input '" + bucket.inputs[i].name + "'");
  CGC_TRY(launch(bound, on));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Status copied = copyOut(bound, bucket, i, rows, outputs[i], on); !copied.isOk())
      return copied.withContext("output '" + bucket.outputs[i].name + "'");
  return Status::ok();
}

Status Context::run(std::string_view entry, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, void *stream) {
  return noThrow([&]() -> Status {
    const PlanData &plan = impl_->engine.plan.data();
    CGC_ASSIGN_OR_RETURN(const Entry *found, findEntry(plan, entry));
    CGC_ASSIGN_OR_RETURN(const size_t index, cgc::selectBucket(*found, inputs));
    const Bucket &bucket = found->buckets[index];
    CGC_TRY(checkViews(bucket.inputs, inputs, impl_->device, "input"));
    CGC_TRY(checkViews(bucket.outputs, outputs, impl_->device, "output"));
    CGC_TRY(checkIndices(bucket.inputs, inputs));
    const BucketRun run{index};
    return impl_->run(found - plan.entries.data(), {&run, 1}, inputs, outputs,
                      cudaStream_t(stream));
  });
}

Status Context::prepare(std::string_view entry, size_t bucket) {
  return noThrow([&]() -> Status {
    const BusyScope scope(impl_->busy);
    if (!scope.entered())
      return busyStatus();
    Engine::Impl &engine = impl_->engine;
    CGC_TRY(engine.fault.check());
    CGC_ASSIGN_OR_RETURN(const auto at, impl_->findBucket(entry, bucket));
    const DeviceGuard guard(engine.device);
    Status status = impl_->prepare(at.first, at.second);
    return impl_->device == DeviceKind::Cuda
               ? engine.fault.note(std::move(status), impl_->stream.get())
               : status;
  });
}

Result<std::vector<std::vector<double>>> Context::profile(std::string_view entry, size_t bucket,
                                                          size_t runs) {
  return noThrow([&]() -> Result<std::vector<std::vector<double>>> {
    const BusyScope scope(impl_->busy);
    if (!scope.entered())
      return busyStatus();
    Engine::Impl &engine = impl_->engine;
    CGC_TRY(engine.fault.check());
    CGC_ASSIGN_OR_RETURN(const auto at, impl_->findBucket(entry, bucket));
    const DeviceGuard guard(engine.device);
    CGC_TRY(impl_->prepare(at.first, at.second));
    auto times = impl_->profileBucket(*impl_->buckets[at.first][at.second], runs);
    if (times.isOk())
      return times;
    Status status = times.status();
    if (impl_->device == DeviceKind::Cuda)
      status = engine.fault.note(std::move(status), impl_->stream.get());
    return status.withContext("profile of entry '" + std::string(entry) + "'");
  });
}

} // namespace cgc
