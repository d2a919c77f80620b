// Context: creates the memory, bound records and executors of all buckets.
#include "runtime/exec/context_impl.h"

#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/communicator.h"
#include "runtime/exec/requirements.h"
#include "runtime/plan/branches.h"

#include <algorithm>

namespace cgc {
namespace {

bool hasIndexBounds(const Bucket &bucket) {
  return std::ranges::any_of(bucket.inputs,
                             [](const IoTensor &input) { return !input.indexBounds.empty(); });
}

bool writesStates(const Bucket &bucket) {
  return std::ranges::any_of(bucket.records, [&](const LaunchRecord &record) {
    return std::ranges::any_of(recordWrites(record), [&](TensorId id) {
      return id != kNoTensor && bucket.tensors[uint32_t(id)].slot.buffer == BufferKind::State;
    });
  });
}

bool callsLibTorch(const Bucket &bucket) {
  return std::ranges::any_of(bucket.records, [](const LaunchRecord &record) {
    return std::holds_alternative<AtenCall>(record.op);
  });
}

} // namespace

Context::Impl::~Impl() {
  const DeviceGuard guard(engine.device);
  // Work in flight may still use the memory and graphs that are freed next.
  if (arena)
    arena->synchronize();
  if (stream)
    (void)cudaStreamSynchronize(stream.get());
  staging.reset();
  buckets.clear();
  stateBuffers.clear();
  arena.reset();
  branches = {};
  stream.reset();
  engine.memory().release(reserved);
  engine.memory().removeDriver(counted.graphs);
  engine.account->subtract(counted);
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
    CGC_ASSIGN_OR_RETURN(branches, BranchStreams::create(parallelBranches(), parallelDetached()));
  }
  if (!plan.states.empty() && options.capture != CaptureTime::AtCreation)
    return {Code::Usage, "the plan has states, which the warm-up runs before a capture change: its "
                         "buckets are captured when the context is created"};
  CGC_TRY(createArena());
  CGC_TRY(createStates());
  if (device == DeviceKind::Cuda && options.copyAheadBytes > 0)
    CGC_TRY(createStaging());
  for (const Entry &entry : plan.entries)
    buckets.emplace_back(entry.buckets.size());
  if (options.capture == CaptureTime::AtCreation)
    for (size_t entry = 0; entry < buckets.size(); ++entry)
      for (size_t i = 0; i < buckets[entry].size(); ++i)
        if (hasRanks(plan.entries[entry].buckets[i])) // Others of the plan can run.
          CGC_TRY(prepare(entry, i));
  CGC_TRY(initializeStates()); // Behind the warm-up runs, which change states.
  // If there are notes, cuBLASLt's calls have already reported the other GPU.
  if (notes.empty())
    noteOtherGpu();
  return Status::ok();
}

Status Context::Impl::createArena() {
  const PlanMemory bytes = planMemory(engine.plan.data(), engine.separateBuffers);
  const uint64_t states = stateOffsets(engine.plan.data(), engine.held).back();
  const bool isShared = sharesArena();
  const uint64_t needed = bytes.io + states + (isShared ? 0 : bytes.arena);
  CGC_TRY(engine.memory().reserve(needed));
  reserved = needed;
  CGC_ASSIGN_OR_RETURN(arena,
                       isShared ? implOf(*engine.pool).arenaOf(bytes.arena)
                                : Arena::create(device, engine.separateBuffers ? 0 : bytes.arena));
  counted.io = bytes.io;
  if (isShared) { // All contexts of the engine use the same part.
    engine.account->useShared(bytes.arena, bytes.workspace);
  } else {
    counted.arenas = bytes.arena;
    counted.workspace = bytes.workspace;
  }
  engine.account->add(counted);
  return Status::ok();
}

Status Context::Impl::createStaging() {
  const uint64_t bytes = InputStaging::bytesFor(engine.plan.data(), options.copyAheadBytes);
  if (bytes == 0)
    return Status::ok();
  CGC_TRY(engine.memory().reserve(bytes));
  reserved += bytes;
  CGC_ASSIGN_OR_RETURN(staging, InputStaging::create(bytes, options.copyAheadBytes));
  counted.io += bytes;
  engine.account->add({.io = bytes});
  return Status::ok();
}

bool Context::Impl::runsBranches() const {
  return options.parallelBranches && device == DeviceKind::Cuda && executor == ExecutorKind::Graph;
}

DetachedCounts Context::Impl::parallelDetached() const {
  DetachedCounts most{};
  if (runsBranches())
    for (const Entry &entry : engine.plan.data().entries)
      for (const Bucket &bucket : entry.buckets) {
        const DetachedCounts counts = detachedRecords(bucket);
        for (size_t d = 0; d < kDetachedBranches; ++d)
          most[d] = std::max(most[d], counts[d]);
      }
  return most;
}

uint32_t Context::Impl::parallelBranches() const {
  uint32_t largest = 0;
  if (runsBranches())
    for (const Entry &entry : engine.plan.data().entries)
      for (const Bucket &bucket : entry.buckets)
        largest = std::max(largest, largestBranch(bucket));
  return largest;
}

bool Context::Impl::hasRanks(const Bucket &bucket) const {
  return fitsRanks(bucket, engine.communicator ? engine.communicator->ranks() : 1);
}

Status Context::Impl::prepare(size_t entry, size_t bucket) {
  std::unique_ptr<BoundBucket> &bound = buckets[entry][bucket];
  if (bound)
    return Status::ok();
  const Entry &of = engine.plan.data().entries[entry];
  const std::string name = "entry '" + of.name + "', bucket " + std::to_string(bucket);
  if (!hasRanks(of.buckets[bucket])) {
    const std::string made = std::to_string(ranksOf(of.buckets[bucket]));
    return {Code::Usage,
            name + " is made for " + made + " ranks, and " +
                (engine.communicator ? std::to_string(engine.communicator->ranks()) + " run it"
                                     : "one runs it") +
                "; start " + made + " ranks, or compile it for another number with --ranks"};
  }
  auto prepared = std::make_unique<BoundBucket>();
  if (Status status = createBucket(of.buckets[bucket], *prepared); !status.isOk()) {
    if (stream)
      (void)cudaStreamSynchronize(stream.get()); // Its work uses the memory that is freed next.
    return status.withContext(name);
  }
  bound = std::move(prepared);
  // The first run may be on another stream and has to wait for the work enqueued here.
  return inTurn(stream.get(), [] { return Status::ok(); }).withContext(name);
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

Result<std::pair<size_t, size_t>> Context::Impl::findBucket(std::string_view entry,
                                                            size_t bucket) const {
  const PlanData &plan = engine.plan.data();
  CGC_ASSIGN_OR_RETURN(const Entry *found, findEntry(plan, entry));
  if (bucket >= found->buckets.size())
    return Status(Code::Usage, "entry '" + found->name + "' has " +
                                   std::to_string(found->buckets.size()) +
                                   " buckets, none of index " + std::to_string(bucket));
  return std::pair(size_t(found - plan.entries.data()), bucket);
}

Status Context::Impl::createParts(const Bucket &bucket, BoundBucket &bound) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // [begin, end)
  for (const TensorRef &tensor : bucket.tensors)
    if (tensor.slot.buffer == BufferKind::Arena)
      ranges.emplace_back(tensor.slot.offset, tensor.slot.offset + *tensorExtent(tensor));
  std::ranges::sort(ranges);
  for (size_t i = 0; i < ranges.size();) {
    auto [begin, end] = ranges[i];
    for (++i; i < ranges.size() && (ranges[i].first < end || ranges[i].first == begin); ++i)
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
  bound.memory.states = &states;
  if (engine.separateBuffers)
    CGC_TRY(createParts(bucket, bound));
  else
    bound.memory.arena = {{0, arena->data()}};
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
  bound.usedRows.assign(bucket.inputs.size(), 0);
  if (device == DeviceKind::Cuda && hasIndexBounds(bucket)) {
    CGC_TRY(checks.prepare());
    bound.waitsForChecks = writesStates(bucket) || callsLibTorch(bucket);
  }
  CGC_ASSIGN_OR_RETURN(bound.records,
                       bindRecords(engine.plan.data(), bucket, bound.memory, libraries(), notes));
  if (!runsBranches())
    removeBranches(bound.records);
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
  return hasHostCalls(bucket) ? captureParts(bucket, bound) : captureGraph(bucket, bound);
}

Status Context::Impl::captureParts(const Bucket &bucket, BoundBucket &bound) {
  CGC_TRY(inTurn(stream.get(), [&] {
    return SplitExecutor::warmUp(bound.records, engine.provider, stream.get());
  }));
  CGC_ASSIGN_OR_RETURN(const uint64_t before, freeGpuMemory());
  CGC_ASSIGN_OR_RETURN(SplitExecutor graphs, SplitExecutor::capture(bound.records, bucket,
                                                                    engine.provider, stream.get()));
  CGC_ASSIGN_OR_RETURN(const uint64_t after, freeGpuMemory());
  countGraphs(before - std::min(before, after));
  bound.executor.emplace<SplitExecutor>(std::move(graphs));
  return Status::ok();
}

Status Context::Impl::captureGraph(const Bucket &bucket, BoundBucket &bound) {
  // The warm-up runs use the arena; the capture runs nothing.
  CGC_TRY(inTurn(stream.get(), [&] {
    return GraphExecutor::warmUp(
        [&] { return branches.enqueue(bound.records, engine.provider, stream.get()); },
        stream.get());
  }));
  auto patch = std::make_unique<AddressPatch>(engine.plan.data(), bucket, bound.memory, libraries(),
                                              engine.device);
  const RecordHooks note{
      .after = [&](size_t i, cudaStream_t on) { return patch->note(i, bound.records[i], on); }};
  const auto enqueueRun = [&] {
    return branches.enqueue(bound.records, engine.provider, stream.get(), note);
  };
  CGC_ASSIGN_OR_RETURN(const uint64_t before, freeGpuMemory());
  CGC_ASSIGN_OR_RETURN(
      GraphExecutor graph,
      GraphExecutor::capture(enqueueRun, engine.provider, stream.get(), branches.streams()));
  CGC_ASSIGN_OR_RETURN(const uint64_t after, freeGpuMemory());
  countGraphs(before - std::min(before, after));
  auto &executor = bound.executor.emplace<GraphExecutor>(std::move(graph));
  if (options.addressSets > 0 && !options.poisonArena && patch->isUseful()) {
    bound.patch = std::move(patch);
    bound.sets = std::make_unique<AddressSets>(*bound.patch, executor.graph(), options.addressSets);
  }
  return Status::ok();
}

Context::Impl &implOf(const Context &context) {
  return *context.impl_;
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
      return withMemoryBreakdown(status, engine.plan(), engine.impl_->runsOn, engine.impl_->held);
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

size_t Context::Impl::capturedBuckets() const {
  size_t count = 0;
  for (const auto &entry : buckets)
    count +=
        std::ranges::count_if(entry, [](const auto &bound) { return bound && bound->hasGraphs(); });
  return count;
}

Result<BucketStats> Context::stats(std::string_view entry, size_t bucket) const {
  return noThrow([&]() -> Result<BucketStats> {
    CGC_ASSIGN_OR_RETURN(const auto at, impl_->findBucket(entry, bucket));
    const BoundBucket *const bound = impl_->buckets[at.first][at.second].get();
    if (!bound)
      return BucketStats{};
    if (const auto *graph = std::get_if<GraphExecutor>(&bound->executor))
      return BucketStats{graph->nodes(), graph->captureMillis()};
    if (const auto *graphs = std::get_if<SplitExecutor>(&bound->executor))
      return BucketStats{graphs->nodes(), graphs->captureMillis()};
    return BucketStats{};
  });
}

const std::vector<std::string> &Context::notes() const {
  return impl_->notes;
}

} // namespace cgc
