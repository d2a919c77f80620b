// Session: requests, and the exchange of the plan that serves them.
#include "runtime/session/session.h"

#include "runtime/base/no_throw.h"
#include "runtime/exec/context_impl.h"
#include "runtime/session/device_views.h"
#include "runtime/session/metrics.h"
#include "runtime/session/session_impl.h"

#include <algorithm>

namespace cgc {

Result<std::unique_ptr<ServedPlan>> ServedPlan::create(std::shared_ptr<const Plan> plan,
                                                       const SessionOptions &options) {
  auto served = std::make_unique<ServedPlan>(std::move(plan), options);
  std::vector<int> devices = options.devices;
  if (devices.empty())
    devices = {options.engine.device};
  for (const int device : devices) {
    EngineOptions engineOptions = options.engine;
    engineOptions.device = device;
    CGC_ASSIGN_OR_RETURN(Engine engine, Engine::create(*served->plan, engineOptions));
    served->engines.push_back(std::make_unique<Engine>(std::move(engine)));
    for (int i = 0; i < options.contexts; ++i) {
      CGC_ASSIGN_OR_RETURN(Context context,
                           Context::create(*served->engines.back(), options.context));
      served->pool.add(std::move(context), implOf(*served->engines.back()).device);
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
                          std::span<const BucketRun> runs) {
  bucketRuns += runs.size();
  splits += runs.size() > 1;
  rows += request.rows;
  for (const BucketRun &run : runs)
    if (run.rows)
      paddedRows += served.requests.batch(request.entry, run.bucket) - run.rows->count;
}

Result<std::optional<int>> Session::Impl::deviceFor(std::span<const TensorView> inputs,
                                                    std::span<const TensorView> outputs,
                                                    void *stream) const {
  CGC_ASSIGN_OR_RETURN(std::optional<int> device, deviceOfViews(inputs, outputs));
  if (stream) {
    CGC_ASSIGN_OR_RETURN(device, deviceOf(static_cast<cudaStream_t>(stream)));
  }
  if (device && std::ranges::find(options.devices, *device) == options.devices.end())
    return Status(Code::Usage,
                  std::string(stream ? "the stream is of GPU " : "a tensor is on GPU ") +
                      std::to_string(*device) + ", on which the session has no contexts");
  return device;
}

Status Session::Impl::run(std::string_view entry, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs, void *stream) {
  const Use served(*this);
  CGC_ASSIGN_OR_RETURN(
      const Request request,
      served->requests.find(entry, inputs, outputs, implOf(*served->engines.front()).runsOn));
  ContextFilter filter;
  if (served->engines.size() > 1) {
    CGC_ASSIGN_OR_RETURN(filter.device, deviceFor(inputs, outputs, stream));
  }
  CGC_ASSIGN_OR_RETURN(const ContextPool::Lease lease, acquire(*served, filter));
  if (lease->device >= 0)
    CGC_TRY(checkAddresses(served->plan->data().entries[request.entry], inputs, outputs,
                           lease->device));
  request.runs(lease->runs);
  count(*served, request, lease->runs);
  return implOf(lease->context)
      .run(request.entry, lease->runs, inputs, outputs, static_cast<cudaStream_t>(stream));
}

Status Session::Impl::exchange(std::shared_ptr<const Plan> plan,
                               Status (*check)(const PlanData &, const PlanData &)) {
  if (!plan)
    return {Code::Usage, "there is no plan (a null pointer)"};
  const std::lock_guard updatesInTurn(updating);
  // Only this call exchanges `served`.
  CGC_TRY(check(served->plan->data(), plan->data()));
  CGC_ASSIGN_OR_RETURN(std::unique_ptr<ServedPlan> next, ServedPlan::create(plan, options));
  std::unique_lock lock(mutex);
  std::swap(served, next);
  unused.wait(lock, [&] { return next->users == 0; });
  lock.unlock();
  ++updates;
  return Status::ok(); // Frees the plan that was served.
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(std::shared_ptr<const Plan> plan, SessionOptions options) {
  return noThrow([&]() -> Result<Session> {
    if (!plan)
      return Status(Code::Usage, "there is no plan (a null pointer)");
    if (options.contexts < 1)
      return Status(Code::Usage, "a session needs at least one context on each device, not " +
                                     std::to_string(options.contexts));
    if (options.maxBatch < 1 || options.maxBatch > kMaxBatch)
      return Status(Code::Usage, "the limit on a batch is from 1 to " + std::to_string(kMaxBatch) +
                                     " rows, not " + std::to_string(options.maxBatch));
    std::vector<int> sorted = options.devices;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      return Status(Code::Usage, "GPU " + std::to_string(*twice) + " is given twice");
    if (!sorted.empty() && (plan->data().target == DeviceKind::Cpu ||
                            options.engine.executor == ExecutorKind::Reference))
      return Status(Code::Usage, "GPUs are given, and the plan runs on the host");
    auto impl = std::make_unique<Impl>(std::move(options));
    CGC_ASSIGN_OR_RETURN(impl->served, ServedPlan::create(std::move(plan), impl->options));
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
  Status status = noThrow([&]() -> Status { return impl_->run(entry, inputs, outputs, stream); });
  ++impl_->requests;
  if (!status.isOk())
    ++impl_->failuresByCode[size_t(status.code())];
  return status;
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
  const std::lock_guard lock(impl_->mutex);
  return std::ranges::all_of(impl_->served->engines, [](const std::unique_ptr<Engine> &engine) {
    return implOf(*engine).fault.check().isOk();
  });
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
  MemoryReport sum;
  for (const std::unique_ptr<Engine> &engine : impl_->served->engines) {
    const MemoryReport one = engine->memory();
    sum.weights += one.weights;
    sum.arenas += one.arenas;
    sum.io += one.io;
    sum.graphs += one.graphs;
  }
  return sum;
}

SessionStats Session::stats() const {
  SessionStats stats;
  for (size_t code = 0; code < kNumCodes; ++code)
    stats.failures += stats.failuresByCode[code] = impl_->failuresByCode[code];
  stats.requests = impl_->requests;
  stats.splits = impl_->splits;
  stats.bucketRuns = impl_->bucketRuns;
  stats.rows = impl_->rows;
  stats.paddedRows = impl_->paddedRows;
  stats.waits = impl_->waits;
  stats.waitMicros = impl_->waitMicros;
  stats.updates = impl_->updates;
  return stats;
}

} // namespace cgc
