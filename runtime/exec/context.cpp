// Context: the memory, bound records and executors of all buckets; run and profile.
#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/engine_impl.h"
#include "runtime/exec/executors.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <variant>

namespace cgc {
namespace {

/// A bucket that is ready to run. It must not move: executors point to `records`.
struct BoundBucket {
  BucketMemory memory;
  std::vector<Buffer> parts; ///< Arena memory if the engine has separate buffers.
  std::vector<BoundRecord> records;
  std::variant<std::monostate, StreamExecutor, GraphExecutor> executor;
};

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

struct Context::Impl {
  Impl(Engine::Impl &engine, ContextOptions options) : engine(engine), options(options) {}
  ~Impl();

  Status create();
  /// Adds a note if the plan was tuned on another GPU.
  void noteOtherGpu();
  /// Usage if there is no such entry or bucket.
  Result<BoundBucket *> findBucket(std::string_view entry, size_t bucket);
  Status createBucket(const Bucket &bucket, BoundBucket &bound);
  /// Allocates memory for each range of the arena that tensors of the bucket share
  /// (EngineOptions::separateBuffers).
  Status createParts(const Bucket &bucket, BoundBucket &bound);
  Status runBucket(BoundBucket &bound, const Bucket &bucket, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs, cudaStream_t callers);
  Status enqueueBucket(BoundBucket &bound, const Bucket &bucket, std::span<const TensorView> inputs,
                       std::span<const TensorView> outputs, cudaStream_t on);
  Result<std::vector<std::vector<double>>> profileBucket(BoundBucket &bound, size_t runs);
  /// Records the event `done` on `on`.
  Status markDone(cudaStream_t on);
  Status launch(BoundBucket &bound, cudaStream_t on);
  /// Calls `body`, which runs records, with ContextOptions::threads threads.
  Status withThreads(const std::function<Status()> &body);
  Status copy(void *to, DeviceKind toDevice, const void *from, DeviceKind fromDevice, size_t bytes,
              cudaStream_t on);
  Status fill(const Buffer &buffer, int value, cudaStream_t on);

  Engine::Impl &engine;
  const ContextOptions options;
  const ExecutorKind executor = options.executor.value_or(engine.executor);
  const DeviceKind device = engine.runsOn; ///< Of all memory and records.
  uint64_t reserved = 0;                   ///< Bytes reserved in the engine's MemoryBudget.
  Buffer arena;
  CudaStream stream; ///< For warm-up, capture, and runs without a caller's stream.
  CudaEvent done;    ///< Recorded after the last run's work.
  std::vector<std::vector<std::unique_ptr<BoundBucket>>> buckets; ///< [entry][bucket]
  std::vector<std::string> notes;
  std::atomic<bool> busy = false;
};

Context::Impl::~Impl() {
  const DeviceGuard guard(engine.device);
  // Work in flight may still use the memory and graphs that are freed next.
  if (done)
    (void)cudaEventSynchronize(done.get());
  if (stream)
    (void)cudaStreamSynchronize(stream.get());
  buckets.clear();
  arena = {};
  done.reset();
  stream.reset();
  engine.memory.release(reserved);
}

Status Context::Impl::create() {
  const PlanData &plan = engine.plan.data();
  CGC_TRY(engine.fault.check());
  if (options.threads < 0 || options.threads > kMaxIntraOpThreads)
    return {Code::Usage, std::to_string(options.threads) + " threads: allowed are 1 to " +
                             std::to_string(kMaxIntraOpThreads) + ", and 0 for the host's setting"};
  if (options.threads > 0 && device == DeviceKind::Cuda)
    return {Code::Usage, "threads are for a plan with target cpu, and this plan's is cuda"};
  if ((executor == ExecutorKind::Reference) != (engine.executor == ExecutorKind::Reference))
    return {Code::Usage, "the reference executor needs an engine that was created for it, and only "
                         "that: its memory is the host's"};
  if (device == DeviceKind::Cuda) {
    CGC_ASSIGN_OR_RETURN(stream, createStream());
    CGC_ASSIGN_OR_RETURN(done, createEvent());
  }
  const PlanBytes bytes = planBytes(engine.plan, engine.separateBuffers);
  CGC_TRY(engine.memory.reserve(bytes.arena + bytes.io));
  reserved = bytes.arena + bytes.io;
  if (!engine.separateBuffers) {
    CGC_ASSIGN_OR_RETURN(arena, Buffer::allocate(device, bytes.arena));
  }
  for (const Entry &entry : plan.entries) {
    auto &list = buckets.emplace_back();
    for (size_t i = 0; i < entry.buckets.size(); ++i) {
      list.push_back(std::make_unique<BoundBucket>());
      Status status = createBucket(entry.buckets[i], *list.back());
      if (!status.isOk())
        return status.withContext("entry '" + entry.name + "', bucket " + std::to_string(i));
    }
  }
  // If there are notes, cuBLASLt's calls have already reported the other GPU.
  if (notes.empty())
    noteOtherGpu();
  // The first run may be on another stream and has to wait for the work enqueued here.
  return device == DeviceKind::Cuda ? markDone(stream.get()) : Status::ok();
}

void Context::Impl::noteOtherGpu() {
  const std::optional<TargetGpu> &tuned = engine.plan.data().gpu;
  const Gpu &gpu = engine.gpu;
  if (device == DeviceKind::Cpu || !tuned || !tuned->tuned ||
      (tuned->name == gpu.name && int(tuned->multiprocessors) == gpu.multiprocessors))
    return;
  notes.push_back("the plan's GEMMs were tuned on " + tuned->name + " (" +
                  std::to_string(tuned->multiprocessors) + " SMs), and this is " + gpu.name + " (" +
                  std::to_string(gpu.multiprocessors) +
                  " SMs): they may be slower here than after `cgc tune`");
}

Result<BoundBucket *> Context::Impl::findBucket(std::string_view entry, size_t bucket) {
  const PlanData &plan = engine.plan.data();
  CGC_ASSIGN_OR_RETURN(const Entry *found, findEntry(plan, entry));
  if (bucket >= found->buckets.size())
    return Status(Code::Usage, "entry '" + found->name + "' has " +
                                   std::to_string(found->buckets.size()) +
                                   " buckets, none of index " + std::to_string(bucket));
  return buckets[found - plan.entries.data()][bucket].get();
}

Status Context::Impl::markDone(cudaStream_t on) {
  return cudaStatus(cudaEventRecord(done.get(), on), "cannot record the end of the run");
}

Status Context::Impl::createParts(const Bucket &bucket, BoundBucket &bound) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // [begin, end)
  for (const TensorRef &tensor : bucket.tensors)
    if (tensor.slot.buffer == BufferKind::Arena)
      ranges.emplace_back(tensor.slot.offset, tensor.slot.offset + *tensorExtent(tensor));
  std::ranges::sort(ranges);
  for (size_t i = 0; i < ranges.size();) {
    auto [begin, end] = ranges[i];
    while (++i < ranges.size() && (ranges[i].first < end || ranges[i].first == begin))
      end = std::max(end, ranges[i].second);
    CGC_ASSIGN_OR_RETURN(Buffer part, Buffer::allocate(device, end - begin));
    bound.memory.arena.push_back({begin, part.data()});
    bound.parts.push_back(std::move(part));
  }
  return Status::ok();
}

Status Context::Impl::createBucket(const Bucket &bucket, BoundBucket &bound) {
  bound.memory.device = device;
  bound.memory.weights = &engine.weights;
  if (engine.separateBuffers)
    CGC_TRY(createParts(bucket, bound));
  else
    bound.memory.arena = {{0, arena.data()}};
  for (const auto &[tensors, buffers] :
       {std::pair(&bucket.inputs, &bound.memory.inputs), {&bucket.outputs, &bound.memory.outputs}})
    for (const IoTensor &io : *tensors) {
      CGC_ASSIGN_OR_RETURN(Buffer buffer,
                           Buffer::allocate(device, *tensorBytes(io.dtype, io.sizes)));
      // Warm-up runs read the inputs. Zero is a valid index and a harmless number. Host buffers
      // already hold zeros.
      if (device == DeviceKind::Cuda)
        CGC_TRY(fill(buffer, 0, stream.get()));
      buffers->push_back(std::move(buffer));
    }
  CGC_ASSIGN_OR_RETURN(bound.records, bindRecords(engine.plan.data(), bucket, bound.memory,
                                                  {engine.provider, engine.cublasLt.get(),
                                                   engine.opLibraries, engine.references.get()},
                                                  notes));
  if (options.programmaticEdges)
    makeProgrammaticEdges(bound.records);
  // Records on empty tensors capture no node, and GraphExecutor treats a graph without nodes as a
  // failed capture.
  const bool hasOutput = std::ranges::any_of(
      bound.memory.outputs, [](const Buffer &output) { return output.size() > 0; });
  if (device == DeviceKind::Cpu || executor == ExecutorKind::Stream || !hasOutput) {
    bound.executor.emplace<StreamExecutor>(bound.records, device, engine.provider);
    return Status::ok();
  }
  const auto enqueueRun = [&] {
    return enqueueAll(bound.records, device, engine.provider, stream.get());
  };
  CGC_ASSIGN_OR_RETURN(GraphExecutor graph,
                       GraphExecutor::capture(enqueueRun, engine.provider, stream.get()));
  bound.executor.emplace<GraphExecutor>(std::move(graph));
  return Status::ok();
}

Status Context::Impl::fill(const Buffer &buffer, int value, cudaStream_t on) {
  if (buffer.size() == 0) // The arena, if the engine has separate buffers.
    return Status::ok();
  if (device == DeviceKind::Cuda)
    return cudaStatus(cudaMemsetAsync(buffer.data(), value, buffer.size(), on),
                      "cannot fill memory");
  std::memset(buffer.data(), value, buffer.size());
  return Status::ok();
}

Status Context::Impl::copy(void *to, DeviceKind toDevice, const void *from, DeviceKind fromDevice,
                           size_t bytes, cudaStream_t on) {
  if (bytes == 0) // Either pointer may be null.
    return Status::ok();
  if (device == DeviceKind::Cpu) {
    std::memmove(to, from, bytes);
    return Status::ok();
  }
  const cudaMemcpyKind kind = fromDevice == DeviceKind::Cpu ? cudaMemcpyHostToDevice
                              : toDevice == DeviceKind::Cpu ? cudaMemcpyDeviceToHost
                                                            : cudaMemcpyDeviceToDevice;
  return cudaStatus(cudaMemcpyAsync(to, from, bytes, kind, on), "cannot copy");
}

Status Context::Impl::launch(BoundBucket &bound, cudaStream_t on) {
  if (options.poisonArena) {
    CGC_TRY(fill(arena, 0xff, on));
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

Status Context::Impl::runBucket(BoundBucket &bound, const Bucket &bucket,
                                std::span<const TensorView> inputs,
                                std::span<const TensorView> outputs, cudaStream_t callers) {
  const cudaStream_t on = callers ? callers : stream.get();
  Status status = enqueueBucket(bound, bucket, inputs, outputs, on);
  if (device == DeviceKind::Cpu)
    return status;
  // A run that failed partway may also have work in flight.
  Status marked = markDone(on);
  CGC_TRY(status);
  CGC_TRY(marked);
  return callers ? Status::ok() : cudaStatus(cudaStreamSynchronize(on), "the run failed");
}

Result<std::vector<std::vector<double>>> Context::Impl::profileBucket(BoundBucket &bound,
                                                                      size_t runs) {
  if (device == DeviceKind::Cuda)
    CGC_TRY(cudaStatus(cudaStreamWaitEvent(stream.get(), done.get()),
                       "cannot wait for the run before"));
  makePlainEdges(bound.records);
  std::vector<std::vector<double>> times;
  const Status profiled = withThreads([&]() -> Status {
    CGC_ASSIGN_OR_RETURN(
        times, profileRecords(bound.records, device, engine.provider, stream.get(), runs));
    return Status::ok();
  });
  if (options.programmaticEdges)
    makeProgrammaticEdges(bound.records);
  if (device == DeviceKind::Cuda)
    CGC_TRY(markDone(stream.get()));
  CGC_TRY(profiled);
  return times;
}

Status Context::Impl::enqueueBucket(BoundBucket &bound, const Bucket &bucket,
                                    std::span<const TensorView> inputs,
                                    std::span<const TensorView> outputs, cudaStream_t on) {
  const bool cuda = device == DeviceKind::Cuda;
  // All runs share the arena and the static buffers, so work on another stream waits for the last
  // run.
  if (cuda)
    CGC_TRY(cudaStatus(cudaStreamWaitEvent(on, done.get()), "cannot wait for the run before"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer &buffer = bound.memory.inputs[i];
    CGC_TRY(copy(buffer.data(), device, inputs[i].data, inputs[i].device, buffer.size(), on)
                .withContext("input '" + bucket.inputs[i].name + "'"));
  }
  CGC_TRY(launch(bound, on));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Buffer &buffer = bound.memory.outputs[i];
    CGC_TRY(copy(outputs[i].data, outputs[i].device, buffer.data(), device, buffer.size(), on)
                .withContext("output '" + bucket.outputs[i].name + "'"));
  }
  return Status::ok();
}

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::Context(Context &&) noexcept = default;
Context &Context::operator=(Context &&) noexcept = default;
Context::~Context() = default;

Result<Context> Context::create(const Engine &engine, ContextOptions options) {
  return noThrow([&]() -> Result<Context> {
    const DeviceGuard guard(engine.impl_->device);
    auto impl = std::make_unique<Impl>(*engine.impl_, options);
    Status status = impl->create();
    if (!status.isOk()) {
      if (impl->stream)
        status = impl->engine.fault.note(status, impl->stream.get());
      // Frees the context first, so that the breakdown reports free memory without it.
      impl.reset();
      return withMemoryBreakdown(status, engine.plan(), engine.impl_->runsOn);
    }
    return Context(std::move(impl));
  });
}

Result<size_t> Context::selectBucket(std::string_view entry,
                                     std::span<const TensorView> inputs) const {
  return noThrow([&]() -> Result<size_t> {
    CGC_ASSIGN_OR_RETURN(const Entry *found, findEntry(impl_->engine.plan.data(), entry));
    return cgc::selectBucket(*found, inputs);
  });
}

Status Context::run(std::string_view entry, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, void *stream) {
  return noThrow([&]() -> Status {
    const BusyScope scope(impl_->busy);
    if (!scope.entered())
      return busyStatus();
    Engine::Impl &engine = impl_->engine;
    CGC_TRY(engine.fault.check());
    const PlanData &plan = engine.plan.data();
    CGC_ASSIGN_OR_RETURN(const Entry *found, findEntry(plan, entry));
    CGC_ASSIGN_OR_RETURN(const size_t bucketIndex, cgc::selectBucket(*found, inputs));
    const Bucket &bucket = found->buckets[bucketIndex];
    CGC_TRY(checkViews(bucket.inputs, inputs, impl_->device, "input"));
    CGC_TRY(checkViews(bucket.outputs, outputs, impl_->device, "output"));
    CGC_TRY(checkIndices(bucket.inputs, inputs));
    const DeviceGuard guard(engine.device);
    BoundBucket &bound = *impl_->buckets[found - plan.entries.data()][bucketIndex];
    Status status = impl_->runBucket(bound, bucket, inputs, outputs, cudaStream_t(stream));
    if (impl_->device == DeviceKind::Cuda)
      status = engine.fault.note(std::move(status), impl_->stream.get());
    return status.isOk() ? status : status.withContext("entry '" + found->name + "'");
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
    CGC_ASSIGN_OR_RETURN(BoundBucket * bound, impl_->findBucket(entry, bucket));
    const DeviceGuard guard(engine.device);
    auto times = impl_->profileBucket(*bound, runs);
    if (times.isOk())
      return times;
    Status status = times.status();
    if (impl_->device == DeviceKind::Cuda)
      status = engine.fault.note(std::move(status), impl_->stream.get());
    return status.withContext("profile of entry '" + std::string(entry) + "'");
  });
}

Result<BucketStats> Context::stats(std::string_view entry, size_t bucket) const {
  return noThrow([&]() -> Result<BucketStats> {
    CGC_ASSIGN_OR_RETURN(const BoundBucket *bound, impl_->findBucket(entry, bucket));
    if (const auto *graph = std::get_if<GraphExecutor>(&bound->executor))
      return BucketStats{graph->nodes(), graph->captureMillis()};
    return BucketStats{};
  });
}

const std::vector<std::string> &Context::notes() const {
  return impl_->notes;
}

} // namespace cgc
