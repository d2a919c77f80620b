// Context: runs and profiles buckets.
#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/busy_scope.h"
#include "runtime/exec/context_impl.h"
#include "runtime/exec/index_checks.h"

#include <atomic>
#include <unistd.h>

namespace cgc {
namespace {

/// Usage if LibTorch has run ops in a process of which this one is a fork. The threads of its pools
/// exist only there, and an op that waited for them would not return.
Status checkNotForked() {
  static std::atomic<pid_t> user = 0; // The process in which LibTorch runs.
  const pid_t self = getpid();
  pid_t other = 0;
  if (user.compare_exchange_strong(other, self) || other == self)
    return Status::ok();
  return {Code::Usage, "LibTorch has run ops in process " + std::to_string(other) +
                           ", of which this process is a fork: its threads exist only there, and a "
                           "run would hang. Fork before the first run, start the process anew "
                           "(spawn) in place of a fork, or use one thread (threads = 1)"};
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

Status Context::Impl::poison(BoundBucket &bound, cudaStream_t on) {
  if (!options.poisonArena)
    return Status::ok();
  CGC_TRY(fill({arena->data(), device, arena->size()}, 0xff, arena->size(), 1, on));
  for (const std::vector<Buffer> *buffers : {&bound.parts, &bound.memory.outputs})
    for (const Buffer &buffer : *buffers)
      CGC_TRY(fill(buffer, 0xff, on));
  return Status::ok();
}

Status Context::Impl::launch(BoundBucket &bound, cudaStream_t on) {
  CGC_TRY(poison(bound, on));
  if (auto *graph = std::get_if<GraphExecutor>(&bound.executor))
    return graph->run(on);
  if (auto *graphs = std::get_if<SplitExecutor>(&bound.executor))
    return graphs->run(on);
  if (device == DeviceKind::Cpu && engine.provider && options.threads != 1)
    CGC_TRY(checkNotForked());
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
    return busyContext();
  CGC_TRY(engine.fault.check());
  CGC_TRY(checks.take(engine.plan.data())
              .withContext("an earlier run, whose outputs are not to be used"));
  const DeviceGuard guard(engine.device);
  const auto named = [&](const Status &status) {
    return status.isOk()
               ? status
               : status.withContext("entry '" + engine.plan.data().entries[entry].name + "'");
  };
  if (callers && device == DeviceKind::Cuda) {
    CGC_ASSIGN_OR_RETURN(const std::optional<StreamCapture> capture, captureOf(callers));
    if (capture) // FaultLatch::note would wait, which would make the capture invalid.
      return named(runCaptured(entry, runs, inputs, outputs, callers));
  }
  for (const BucketRun &run : runs)
    CGC_TRY(prepare(entry, run.bucket));
  Status status = runBuckets(entry, runs, inputs, outputs, callers);
  if (device == DeviceKind::Cuda)
    status = engine.fault.note(std::move(status), stream.get());
  return named(status);
}

Status Context::Impl::runBuckets(size_t entry, std::span<const BucketRun> runs,
                                 std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs, cudaStream_t callers) {
  const cudaStream_t on = callers ? callers : stream.get();
  const std::vector<Bucket> &of = engine.plan.data().entries[entry].buckets;
  const auto enqueue = [&]() -> Status {
    if (staging)
      CGC_TRY(staging->waitOn(on));
    for (const BucketRun &run : runs)
      CGC_TRY(enqueueBucket(
          {*buckets[entry][run.bucket], of[run.bucket], run.rows, inputs, outputs}, on));
    return Status::ok();
  };
  std::vector<TensorView> staged;
  const auto stageAndEnqueue = [&]() -> Status {
    if (staging && runs.size() == 1 && !runs[0].rows) {
      CGC_ASSIGN_OR_RETURN(staged, staging->begin(of[runs[0].bucket], inputs));
      inputs = staged;
    }
    return inTurn(on, std::ref(enqueue));
  };
  const Status enqueued = stageAndEnqueue();
  if (!enqueued.isOk() && staging)
    staging->abandon();
  CGC_TRY(enqueued);
  if (callers || device == DeviceKind::Cpu)
    return Status::ok();
  CGC_TRY(CGC_CUDA(cudaStreamSynchronize(on), "the run failed"));
  return checks.take(engine.plan.data());
}

Status Context::Impl::profileBucket(std::string_view entry, size_t bucket,
                                    const std::function<Status(BoundBucket &)> &profile) {
  const BusyScope scope(busy);
  if (!scope.entered())
    return busyContext();
  const DeviceGuard guard(engine.device);
  CGC_ASSIGN_OR_RETURN(BoundBucket *const bound, prepared(entry, bucket));
  makePlainEdges(bound->records);
  Status status =
      inTurn(stream.get(), [&] { return withThreads([&] { return profile(*bound); }); });
  if (options.programmaticEdges)
    makeProgrammaticEdges(bound->records);
  if (device == DeviceKind::Cuda)
    status = engine.fault.note(std::move(status), stream.get());
  return status.withContext("profile of entry '" + std::string(entry) + "'");
}

Status Context::Impl::copyAndCheckInputs(const BucketCall &call, const IoAddresses &at,
                                         cudaStream_t on) {
  CGC_TRY(copyInputs(call, at, on));
  CGC_ASSIGN_OR_RETURN(const bool any, enqueueChecks(call, at, on));
  if (!any || !call.bound.waitsForChecks)
    return Status::ok();
  CGC_TRY(CGC_CUDA(cudaStreamSynchronize(on), "cannot wait for the checks of indices"));
  return checks.take(engine.plan.data());
}

Status Context::Impl::enqueueBucket(const BucketCall &call, cudaStream_t on) {
  static const IoAddresses kStatic;
  BoundBucket &bound = call.bound;
  if (!bound.sets || !findWanted(call)) {
    CGC_TRY(copyAndCheckInputs(call, kStatic, on));
    CGC_TRY(launch(bound, on));
    return copyOutputs(call, kStatic, on);
  }
  const uint64_t before = bound.sets->bytes();
  CGC_ASSIGN_OR_RETURN(const AddressSets::Set *const set, bound.sets->find(bound.wanted, on));
  countGraphs(bound.sets->bytes() - before);
  CGC_TRY(copyAndCheckInputs(call, set->at, on));
  if (set->at == bound.patch->own())
    CGC_TRY(launch(bound, on));
  else
    CGC_TRY(CGC_CUDA(cudaGraphLaunch(set->exec.get(), on), "cannot launch the graph"));
  return copyOutputs(call, set->at, on);
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

Result<BoundBucket *> Context::Impl::use(std::string_view entry, size_t bucket) {
  const BusyScope scope(busy);
  if (!scope.entered())
    return busyContext();
  const DeviceGuard guard(engine.device);
  return prepared(entry, bucket);
}

Result<BoundBucket *> Context::Impl::prepared(std::string_view entry, size_t bucket) {
  CGC_TRY(engine.fault.check());
  CGC_ASSIGN_OR_RETURN(const auto at, findBucket(entry, bucket));
  Status status = prepare(at.first, at.second);
  if (device == DeviceKind::Cuda)
    status = engine.fault.note(std::move(status), stream.get());
  CGC_TRY(status);
  return buckets[at.first][at.second].get();
}

Status Context::prepare(std::string_view entry, size_t bucket) {
  return noThrow([&]() -> Status { return impl_->use(entry, bucket).status(); });
}

Result<std::vector<std::vector<double>>> Context::profile(std::string_view entry, size_t bucket,
                                                          size_t runs) {
  return noThrow([&]() -> Result<std::vector<std::vector<double>>> {
    std::vector<std::vector<double>> times;
    CGC_TRY(impl_->profileBucket(entry, bucket, [&](BoundBucket &bound) -> Status {
      CGC_ASSIGN_OR_RETURN(times,
                           profileRecords(bound.records, impl_->device, impl_->engine.provider,
                                          impl_->stream.get(), runs));
      return Status::ok();
    }));
    return times;
  });
}

Result<std::vector<std::vector<RecordSpan>>> Context::timeline(std::string_view entry,
                                                               size_t bucket, size_t runs) {
  return noThrow([&]() -> Result<std::vector<std::vector<RecordSpan>>> {
    std::vector<std::vector<RecordSpan>> spans;
    CGC_TRY(impl_->profileBucket(entry, bucket, [&](BoundBucket &bound) -> Status {
      CGC_ASSIGN_OR_RETURN(spans,
                           spansOfRecords(bound.records, impl_->device, impl_->engine.provider,
                                          impl_->branches, impl_->stream.get(), runs));
      return Status::ok();
    }));
    return spans;
  });
}

} // namespace cgc
