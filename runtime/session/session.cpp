// Session: requests, and the exchange of the plan that serves them.
#include "runtime/session/session.h"

#include "runtime/base/no_throw.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/context_impl.h"
#include "runtime/session/device_views.h"
#include "runtime/session/metrics.h"
#include "runtime/session/session_impl.h"

#include <algorithm>

namespace cgc {

namespace {

/// Gives a context of a plan that draws random numbers a seed of its own.
Status setSeed(Context &context, const PlanData &plan, int64_t seed, int64_t index) {
  if (!plan.findState(kSeedState))
    return Status::ok();
  auto own = int64_t(uint64_t(seed) + (uint64_t(index) << 32));
  return context.writeState(kSeedState, {&own, DType::I64, DeviceKind::Cpu, {}, {}});
}

} // namespace

Result<std::shared_ptr<ServedPlan>> ServedPlan::create(std::shared_ptr<const Plan> plan,
                                                       const SessionOptions &options) {
  // Each context would train parameters of its own. Random numbers and counts may differ.
  const std::vector<State> &states = plan->data().states;
  if (std::ranges::find(states, StateRole::Parameter, &State::role) != states.end())
    return Status(Code::Usage,
                  "the plan trains parameters, and a session serves fixed ones: it is "
                  "a training plan; run it with `cgc train`, or with the trainer of the "
                  "C++ and C APIs");
  const auto served = std::make_shared<ServedPlan>(std::move(plan), options);
  int64_t created = 0;
  for (const int device : options.devices) {
    EngineOptions engineOptions = options.engine;
    engineOptions.device = device;
    if (device != options.devices.front())
      engineOptions.copyWeightsFrom = served->engines.front().get();
    CGC_ASSIGN_OR_RETURN(Engine engine, Engine::create(*served->plan, engineOptions));
    served->engines.push_back(std::make_unique<Engine>(std::move(engine)));
    for (int i = 0; i < options.contexts; ++i) {
      CGC_ASSIGN_OR_RETURN(Context context,
                           Context::create(*served->engines.back(), options.context));
      CGC_TRY(setSeed(context, served->plan->data(), options.seed, created++));
      served->pool.add(std::move(context), implOf(*served->engines.back()).device);
    }
    ContextOptions captured = options.context;
    captured.capture = CaptureTime::AtCreation; // A bucket cannot be prepared during a capture.
    captured.ownArena = true;
    for (int i = 0; i < options.capturedContexts; ++i) {
      CGC_ASSIGN_OR_RETURN(Context context, Context::create(*served->engines.back(), captured));
      CGC_TRY(setSeed(context, served->plan->data(), options.seed, created++));
      served->captured.add(std::move(context), implOf(*served->engines.back()).device);
    }
  }
  return served;
}

class Session::Impl::Use final {
public:
  explicit Use(Impl &session) : session_(session) {
    const std::lock_guard lock(session.mutex);
    served_ = session.served.get();
    ++served_->users;
  }
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;
  ~Use() {
    const std::lock_guard lock(session_.mutex);
    if (--served_->users == 0)
      session_.unused.notify_all();
  }
  ServedPlan &operator*() const { return *served_; }
  ServedPlan *operator->() const { return served_; }

private:
  Impl &session_;
  ServedPlan *served_;
};

Result<ContextPool::Lease> Session::Impl::acquire(ServedPlan &served, const ContextFilter &filter) {
  const WaitLimits limits{options.maxWaiting, options.timeout};
  if (!served.pool.isFull(filter))
    return served.pool.acquire(filter, limits);
  const auto start = std::chrono::steady_clock::now();
  auto lease = served.pool.acquire(filter, limits);
  ++waits;
  waitMicros += std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::steady_clock::now() - start)
                    .count();
  return lease;
}

void Session::Impl::count(const ServedPlan &served, const Request &request,
                          std::span<const BucketRun> runs, const Context *replayed) {
  bucketRuns += runs.size();
  if (replayed)
    replays += std::ranges::count_if(runs, [&](const BucketRun &run) {
      return implOf(*replayed).buckets[request.entry][run.bucket]->hasGraphs();
    });
  splits += runs.size() > 1;
  rows += request.rows;
  for (const BucketRun &run : runs) {
    ++*served.counters[request.entry][run.bucket];
    if (run.rows)
      paddedRows += served.requests.batch(request.entry, run.bucket) - run.rows->count;
  }
}

Result<std::optional<int>> Session::Impl::deviceFor(std::span<const TensorView> inputs,
                                                    std::span<const TensorView> outputs,
                                                    cudaStream_t stream, bool isCapturing) const {
  std::optional<int> device;
  const bool isOfStream = stream && !isCapturing;
  if (isOfStream) {
    CGC_ASSIGN_OR_RETURN(device, deviceOf(stream));
  } else if (options.devices.size() > 1) { // Else checkAddresses() finds a view that is elsewhere.
    CGC_ASSIGN_OR_RETURN(device, deviceOfViews(inputs, outputs));
  }
  if (device && std::ranges::find(options.devices, *device) == options.devices.end())
    return Status(Code::Usage,
                  std::string(isOfStream ? "the stream is of GPU " : "a tensor is on GPU ") +
                      std::to_string(*device) + ", on which the session has no contexts");
  return device;
}

Result<int> Session::Impl::deviceOfCapture(std::optional<int> ofViews) const {
  if (ofViews || options.devices.size() == 1)
    return ofViews.value_or(options.devices.front());
  int current = -1;
  CGC_TRY(CGC_CUDA(cudaGetDevice(&current), "cannot ask for the current GPU"));
  if (std::ranges::find(options.devices, current) == options.devices.end())
    return Status(Code::Usage, "the stream is being captured, all tensors are in host memory, and "
                               "the session has no contexts on the current GPU, " +
                                   std::to_string(current));
  return current;
}

Status Session::Impl::run(std::string_view entry, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs, void *stream) {
  const Use served(*this);
  CGC_ASSIGN_OR_RETURN(
      const Request request,
      served->requests.find(entry, inputs, outputs, implOf(*served->engines.front()).runsOn));
  ContextFilter filter;
  if (implOf(*served->engines.front()).runsOn == DeviceKind::Cuda) {
    auto *const callers = static_cast<cudaStream_t>(stream);
    std::optional<StreamCapture> capture;
    if (callers) {
      CGC_ASSIGN_OR_RETURN(capture, captureOf(callers));
    }
    CGC_ASSIGN_OR_RETURN(filter.device, deviceFor(inputs, outputs, callers, capture.has_value()));
    if (capture && request.isFallback)
      return {Code::Usage,
              "the stream is being captured, and no bucket takes the request: LibTorch "
              "cannot run the fallback model in a capture; add the shapes to the plan"};
    if (capture) {
      CGC_ASSIGN_OR_RETURN(const int device, deviceOfCapture(filter.device));
      return runCaptured(*served, request, *capture, device, inputs, outputs, callers);
    }
  }
  CGC_ASSIGN_OR_RETURN(const ContextPool::Lease lease, acquire(*served, filter));
  if (lease->device >= 0)
    CGC_TRY(checkAddresses(served->plan->data().entries[request.entry], inputs, outputs,
                           lease->device));
  if (request.isFallback)
    return runFallback(*lease, served->plan->data().entries[request.entry], inputs, outputs,
                       static_cast<cudaStream_t>(stream));
  request.runs(lease->runs);
  const auto &ready = implOf(lease->context).buckets[request.entry];
  const bool captures =
      std::ranges::any_of(lease->runs, [&](const BucketRun &run) { return !ready[run.bucket]; });
  Status status =
      implOf(lease->context)
          .run(request.entry, lease->runs, inputs, outputs, static_cast<cudaStream_t>(stream));
  if (captures)
    countCaptures(*lease);
  if (status.isOk())
    count(*served, request, lease->runs, &lease->context);
  return status;
}

Status Session::Impl::runFallback(PooledContext &place, const Entry &entry,
                                  std::span<const TensorView> inputs,
                                  std::span<const TensorView> outputs, cudaStream_t callers) {
  const Context::Impl &context = implOf(place.context);
  CGC_TRY(context.engine.fault.check());
  const DeviceGuard guard(place.device);
  const cudaStream_t on = callers ? callers : context.stream.get();
  Status status = fallback->run(place.device, entry, inputs, outputs, on, options.context.threads);
  if (place.device >= 0) {
    if (status.isOk() && !callers)
      status = CGC_CUDA(cudaStreamSynchronize(on), "the run failed");
    status = context.engine.fault.note(std::move(status), on);
  }
  if (!status.isOk())
    return status;
  if (const uint64_t number = ++fallbacks; isPowerOfTen(number))
    tell(LogLevel::Warning, [&] {
      return "LibTorch ran a request that no bucket of entry '" + entry.name + "' takes (" +
             std::to_string(number) + " so far); add its shapes to the plan";
    });
  return status;
}

Status Session::Impl::runCaptured(ServedPlan &plan, const Request &request,
                                  const StreamCapture &capture, int device,
                                  std::span<const TensorView> inputs,
                                  std::span<const TensorView> outputs, cudaStream_t stream) {
  CGC_TRY(checkAddresses(plan.plan->data().entries[request.entry], inputs, outputs, device));
  std::vector<BucketRun> runs;
  request.runs(runs);
  return plan.captured.run(capture, device, [&](Context &context) {
    Status status = implOf(context).run(request.entry, runs, inputs, outputs, stream);
    if (status.isOk())
      count(plan, request, runs, /*replayed=*/nullptr);
    return status;
  });
}

Result<std::unique_ptr<Reservation::Impl>>
Session::Impl::reserve(std::string_view entry, int64_t batch, std::optional<int> device) {
  const Use use(*this);
  CGC_ASSIGN_OR_RETURN(const Request request, use->requests.findBucketFor(entry, batch));
  if (device && implOf(*use->engines.front()).runsOn == DeviceKind::Cpu)
    return Status(Code::Usage,
                  "GPU " + std::to_string(*device) + " is given, and the plan runs on the host");
  if (device && std::ranges::find(options.devices, *device) == options.devices.end())
    return Status(Code::Usage, "the session has no contexts on GPU " + std::to_string(*device));
  CGC_ASSIGN_OR_RETURN(ContextPool::Lease lease, acquire(*use, {.device = device}));
  auto reservation = std::make_unique<Reservation::Impl>(*this, use->shared_from_this(),
                                                         std::move(lease), request);
  CGC_TRY(reservation->create());
  countCaptures(*reservation->lease);
  return reservation;
}

MemoryReport ServedPlan::memory() const {
  MemoryReport sum;
  for (const std::unique_ptr<Engine> &engine : engines) {
    const MemoryReport one = engine->memory();
    sum += one;
    sum.peak += one.peak;
  }
  return sum;
}

uint64_t ServedPlan::sharedArena() const {
  uint64_t bytes = 0;
  for (const std::unique_ptr<Engine> &engine : engines)
    bytes += engine->memory().arenas - implOf(*engine).account->own().arenas;
  return bytes;
}

Status Session::Impl::exchange(std::shared_ptr<const Plan> plan,
                               Status (*check)(const PlanData &, const PlanData &)) {
  if (!plan)
    return {Code::Usage, "there is no plan (a null pointer)"};
  const std::lock_guard updatesInTurn(updating);
  // Only this call exchanges `served`.
  CGC_TRY(check(served->plan->data(), plan->data()));
  if (fallback && plan != served->plan)
    CGC_TRY(checkEqualWeights(*served->plan, *plan));
  std::erase_if(retired, [](const auto &plan) { return !plan->captured.areHeld(); });
  CGC_ASSIGN_OR_RETURN(std::shared_ptr<ServedPlan> next, ServedPlan::create(plan, options));
  introduce(*next);
  std::list<std::shared_ptr<ServedPlan>> last(1); // Allocated before anything is exchanged.
  const MemoryReport before = served->memory(), after = next->memory();
  const uint64_t shared = std::min(served->sharedArena(), next->sharedArena());
  std::unique_lock lock(mutex);
  peakBytes = std::max({peakBytes, before.peak, before.total() + after.peak - shared});
  std::swap(served, next);
  unused.wait(lock, [&] { return next->users == 0; });
  lock.unlock();
  last.front() = std::move(next);
  if (last.front()->captured.areHeld())
    retired.splice(retired.end(), last);
  ++updates;
  toldOfLoss = false;
  tell(LogLevel::Info, [] { return "another plan serves the requests now"; });
  return Status::ok(); // Frees the plan that was served, unless somebody holds it.
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(std::shared_ptr<const Plan> plan, SessionOptions options) {
  return noThrow([&]() -> Result<Session> {
    if (!plan)
      return Status(Code::Usage, "there is no plan (a null pointer)");
    if (options.contexts < 1 || options.contexts > kMaxContexts ||
        options.capturedContexts > kMaxContexts)
      return Status(Code::Usage,
                    "a session needs at least one context on each device and at most " +
                        std::to_string(kMaxContexts) + ", not " +
                        std::to_string(options.capturedContexts > kMaxContexts
                                           ? options.capturedContexts
                                           : options.contexts));
    const bool isOnHost = plan->data().target == DeviceKind::Cpu ||
                          options.engine.executor == ExecutorKind::Reference;
    if (options.capturedContexts < 0 || (options.capturedContexts > 0 && isOnHost))
      return Status(Code::Usage, std::to_string(options.capturedContexts) +
                                     " contexts are set aside for captures" +
                                     (isOnHost ? ", and the plan runs on the host" : ""));
    if (options.maxBatch < 1 || options.maxBatch > kMaxBatch)
      return Status(Code::Usage, "the limit on a batch is from 1 to " + std::to_string(kMaxBatch) +
                                     " rows, not " + std::to_string(options.maxBatch));
    std::vector<int> sorted = options.devices;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      return Status(Code::Usage, "GPU " + std::to_string(*twice) + " is given twice");
    if (!sorted.empty() && isOnHost)
      return Status(Code::Usage, "GPUs are given, and the plan runs on the host");
    // A wait adds it to the time now.
    if (options.timeout && *options.timeout > std::chrono::years(1))
      options.timeout = {};
    if (options.devices.empty())
      options.devices = {options.engine.device};
    auto impl = std::make_unique<Impl>(std::move(options));
    if (!impl->options.fallbackModel.empty()) {
      const SessionOptions &o = impl->options;
      CGC_ASSIGN_OR_RETURN(impl->fallback,
                           Fallback::create(o.fallbackModel, plan->data(), o.devices, o.engine));
    }
    CGC_ASSIGN_OR_RETURN(impl->served, ServedPlan::create(std::move(plan), impl->options));
    impl->introduce(*impl->served);
    return Session(std::move(impl));
  });
}

Result<Session> Session::load(const std::string &path, SessionOptions options) {
  return noThrow([&]() -> Result<Session> {
    CGC_ASSIGN_OR_RETURN(Plan plan, Plan::load(path));
    return create(std::make_shared<const Plan>(std::move(plan)), std::move(options));
  });
}

Status Session::run(std::string_view entry, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, void *stream) {
  return impl_->counted([&] { return impl_->run(entry, inputs, outputs, stream); });
}

Result<Reservation> Session::reserve(std::string_view entry, int64_t batch,
                                     std::optional<int> device) {
  return noThrow([&]() -> Result<Reservation> {
    CGC_ASSIGN_OR_RETURN(std::unique_ptr<Reservation::Impl> impl,
                         impl_->reserve(entry, batch, device));
    return Reservation(std::move(impl));
  });
}

Status Session::prepare(std::string_view entry, int64_t batch) {
  return noThrow([&]() -> Status {
    const Impl::Use served(*impl_);
    CGC_ASSIGN_OR_RETURN(const std::vector<size_t> buckets,
                         served->requests.bucketsFor(entry, batch));
    for (PooledContext &context : served->pool.contexts()) {
      CGC_ASSIGN_OR_RETURN(const ContextPool::Lease lease,
                           impl_->acquire(*served, {.only = &context}));
      for (const size_t bucket : buckets)
        CGC_TRY(lease->context.prepare(entry, bucket));
      impl_->countCaptures(*lease);
    }
    return Status::ok();
  });
}

Status Session::update(std::shared_ptr<const Plan> plan) {
  return noThrow([&]() -> Status { return impl_->exchange(std::move(plan), checkEqualEntries); });
}

Status Session::swapWeights(std::shared_ptr<const Plan> plan) {
  return noThrow([&]() -> Status { return impl_->exchange(std::move(plan), checkEqualStructure); });
}

Status Session::reset() {
  return noThrow([&]() -> Status {
    return impl_->exchange(plan(), [](const PlanData &, const PlanData &) { return Status::ok(); });
  });
}

bool Session::healthy() const {
  return impl_->isHealthy();
}

std::string Session::metrics(std::string_view name) const {
  return prometheusText(stats(), memory(), healthy(), name);
}

std::shared_ptr<const Plan> Session::plan() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->served->plan;
}

MemoryReport Session::memory() const {
  const std::lock_guard lock(impl_->mutex);
  MemoryReport memory = impl_->served->memory();
  memory.peak = std::max(memory.peak, impl_->peakBytes);
  return memory;
}

SessionStats Session::stats() const {
  SessionStats stats;
#define CGC_SESSION_COUNTER(member, name, help) stats.member = impl_->member;
#include "runtime/session/counters.def"
  for (size_t code = 0; code < kNumCodes; ++code)
    stats.failuresByCode[code] = impl_->failuresByCode[code];
  const std::lock_guard lock(impl_->mutex);
  for (const auto &[bucket, runs] : impl_->runsOfBuckets)
    stats.buckets.push_back({bucket.first, bucket.second, runs});
  return stats;
}

} // namespace cgc
