// Session::Impl and ServedPlan: a plan on all devices of a session, and its exchange.
#pragma once

#include "runtime/session/context_pool.h"
#include "runtime/session/request.h"
#include "runtime/session/session.h"

#include <atomic>

namespace cgc {

/// A plan with an engine on each device and its contexts.
struct ServedPlan {
  ServedPlan(std::shared_ptr<const Plan> plan, const SessionOptions &options)
      : plan(std::move(plan)), requests(this->plan->data(), options.maxBatch) {}
  /// Fails as Session::create does.
  static Result<std::unique_ptr<ServedPlan>> create(std::shared_ptr<const Plan> plan,
                                                    const SessionOptions &options);

  const std::shared_ptr<const Plan> plan;
  const RequestTable requests;
  std::vector<std::unique_ptr<Engine>> engines; // Before the pool, whose contexts borrow them.
  ContextPool pool;
  int users = 0; ///< Calls that use this plan. Guarded by Session::Impl::mutex.
};

struct Session::Impl {
  explicit Impl(SessionOptions options) : options(std::move(options)) {}

  /// Keeps the plan that is served now for its lifetime.
  class Use;
  Status run(std::string_view entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream);
  /// The GPU that has to run a request: that of its stream, else that of its views, if any.
  Result<std::optional<int>> deviceFor(std::span<const TensorView> inputs,
                                       std::span<const TensorView> outputs, void *stream) const;
  /// Takes a context and counts the wait.
  Result<ContextPool::Lease> acquire(ServedPlan &served, const ContextFilter &filter);
  /// Counts the runs of a request.
  void count(const ServedPlan &served, const Request &request, std::span<const BucketRun> runs);
  /// Serves `plan` from now on, once `check` has accepted it beside the present one.
  Status exchange(std::shared_ptr<const Plan> plan,
                  Status (*check)(const PlanData &present, const PlanData &next));

  const SessionOptions options;
  std::mutex updating;      ///< Held by the one call that exchanges plans.
  mutable std::mutex mutex; ///< Guards `served` and ServedPlan::users.
  std::condition_variable unused;
  std::unique_ptr<ServedPlan> served;

  std::array<std::atomic<uint64_t>, kNumCodes> failuresByCode = {};
  std::atomic<uint64_t> requests = 0, splits = 0, bucketRuns = 0, rows = 0, paddedRows = 0,
                        waits = 0, waitMicros = 0, updates = 0;
};

/// Usage, naming the first difference, unless `next` has all entries of `present`, with equal names
/// and dtypes of inputs and outputs.
Status checkEqualEntries(const PlanData &present, const PlanData &next);
/// Usage, naming the first difference, unless the plans are equal but for the bytes of weights.
Status checkEqualStructure(const PlanData &present, const PlanData &next);

} // namespace cgc
