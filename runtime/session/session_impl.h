// Session::Impl and ServedPlan: a plan on all devices of a session, and its exchange.
#pragma once

#include "runtime/base/no_throw.h"
#include "runtime/session/captured_contexts.h"
#include "runtime/session/context_pool.h"
#include "runtime/session/fallback.h"
#include "runtime/session/request.h"
#include "runtime/session/session.h"

#include <atomic>
#include <list>
#include <map>

namespace cgc {

/// A plan with an engine on each device and its contexts.
struct ServedPlan : std::enable_shared_from_this<ServedPlan> {
  ServedPlan(std::shared_ptr<const Plan> plan, const SessionOptions &options)
      : plan(std::move(plan)),
        requests(this->plan->data(), options.maxBatch, !options.fallbackModel.empty()) {}
  /// Fails as Session::create does.
  static Result<std::shared_ptr<ServedPlan>> create(std::shared_ptr<const Plan> plan,
                                                    const SessionOptions &options);

  const std::shared_ptr<const Plan> plan;
  const RequestTable requests;
  std::vector<std::unique_ptr<Engine>> engines; // Before the contexts, which borrow them.
  ContextPool pool;
  CapturedContexts captured;
  /// The sum over the engines.
  MemoryReport memory() const;
  /// The part of their memory that is a pool's arena.
  uint64_t sharedArena() const;
  /// The counters of the buckets, [entry][bucket], which the session owns.
  std::vector<std::vector<std::atomic<uint64_t> *>> counters;
  int users = 0; ///< Calls that use this plan. Guarded by Session::Impl::mutex.
};

struct Session::Impl {
  explicit Impl(SessionOptions options) : options(std::move(options)) {}

  /// Keeps the plan that is served now for its lifetime.
  class Use;
  Status run(std::string_view entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream);
  /// Adds a request to the caller's graph that captures `stream`.
  Status runCaptured(ServedPlan &plan, const Request &request, const StreamCapture &capture,
                     int device, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, cudaStream_t stream);
  Result<std::unique_ptr<Reservation::Impl>> reserve(std::string_view entry, int64_t batch,
                                                     std::optional<int> device);
  /// Calls `body`, which is a request, and counts it and its failure.
  template <class Body> Status counted(const Body &body) {
    const Status status = noThrow([&]() -> Status { return body(); });
    ++requests;
    if (!status.isOk())
      countFailure(status);
    return status;
  }
  /// The GPU that has to run a request: that of `stream`, unless it is null or being captured, or
  /// else, of several, that of its views. Usage if the session does not have it.
  Result<std::optional<int>> deviceFor(std::span<const TensorView> inputs,
                                       std::span<const TensorView> outputs, cudaStream_t stream,
                                       bool isCapturing) const;
  /// The GPU that has to run a request in a capture, of whose stream CUDA does not tell the GPU:
  /// that of the views, or else, of several, the current one. Usage if the session does not have
  /// it.
  Result<int> deviceOfCapture(std::optional<int> ofViews) const;
  /// Takes a context and counts the wait.
  Result<ContextPool::Lease> acquire(ServedPlan &served, const ContextFilter &filter);
  /// Runs a request by the fallback model, while it has a context's place.
  Status runFallback(PooledContext &place, const Entry &entry, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, cudaStream_t callers);
  /// Counts the runs of a request that has succeeded, which `replayed` made; null: a caller's graph
  /// makes them.
  void count(const ServedPlan &served, const Request &request, std::span<const BucketRun> runs,
             const Context *replayed);
  /// Gives a plan that is to be served its counters, and counts its captures.
  void introduce(ServedPlan &next);
  /// Counts the buckets that a context has captured since the last call. Only for who has it.
  void countCaptures(PooledContext &context);
  /// Counts a request that failed.
  void countFailure(const Status &status);
  bool isHealthy() const;
  /// Passes a message to SessionOptions::log, if there is one.
  void tell(LogLevel level, const std::function<std::string()> &text) const;
  /// Serves `plan` from now on, once `check` has accepted it beside the present one.
  Status exchange(std::shared_ptr<const Plan> plan,
                  Status (*check)(const PlanData &present, const PlanData &next));

  const SessionOptions options;       ///< `devices` is not empty.
  std::unique_ptr<Fallback> fallback; ///< Null without SessionOptions::fallbackModel.
  std::mutex updating;                ///< Held by the one call that exchanges plans.
  mutable std::mutex mutex;           ///< Guards `served` and ServedPlan::users.
  std::condition_variable unused;
  std::shared_ptr<ServedPlan> served; ///< A reservation shares it.
  uint64_t peakBytes = 0;             ///< Of plans that were exchanged. Guarded by `mutex`.
  /// Plans that served requests before and that graphs of callers hold. Guarded by `updating`.
  std::list<std::shared_ptr<ServedPlan>> retired;

  std::array<std::atomic<uint64_t>, kNumCodes> failuresByCode = {};
#define CGC_SESSION_COUNTER(member, name, help) std::atomic<uint64_t> member = 0;
#include "runtime/session/counters.def"
  std::atomic<bool> toldOfLoss = false;
  /// The runs of buckets by entry and inputs. Guarded by `mutex`, but for the counters themselves.
  std::map<std::pair<std::string, std::string>, std::atomic<uint64_t>> runsOfBuckets;
};

/// Whether `number` is 1, 10, 100, ...: which of many equal events a session tells its log about.
bool isPowerOfTen(uint64_t number);

struct Reservation::Impl {
  Impl(Session::Impl &session, std::shared_ptr<ServedPlan> served, ContextPool::Lease lease,
       const Request &request)
      : session(session), served(std::move(served)), lease(std::move(lease)), request(request) {}
  /// Finds the buffers of the bucket and waits for earlier work that uses them.
  Status create();
  Status runOn(void *stream);

  struct Tensor {
    TensorView view;
    std::vector<int64_t> sizes; ///< Those of `view`.
  };
  Session::Impl &session;
  const std::shared_ptr<ServedPlan> served; // Before the lease, which borrows its pool.
  const ContextPool::Lease lease;
  const Request request;
  BucketRun run;
  std::vector<Tensor> inputs, outputs;
  std::vector<TensorView> inputViews, outputViews;
};

/// Usage, naming the first difference, unless `next` has all entries of `present`, with equal names
/// and dtypes of inputs and outputs.
Status checkEqualEntries(const PlanData &present, const PlanData &next);
/// Usage, naming the first difference, unless the plans are equal but for the bytes of weights.
Status checkEqualStructure(const PlanData &present, const PlanData &next);

} // namespace cgc
