// Session::Impl: counters of buckets, captures and failures, and the messages about them.
#include "runtime/exec/context_impl.h"
#include "runtime/session/session_impl.h"

#include <algorithm>

namespace cgc {

bool isPowerOfTen(uint64_t number) {
  while (number >= 10 && number % 10 == 0)
    number /= 10;
  return number == 1;
}

void Session::Impl::introduce(ServedPlan &next) {
  const PlanData &plan = next.plan->data();
  {
    const std::lock_guard lock(mutex);
    for (const Entry &entry : plan.entries) {
      auto &counters = next.counters.emplace_back();
      for (const Bucket &bucket : entry.buckets)
        counters.push_back(&runsOfBuckets[{entry.name, shapesText(bucket.inputs)}]);
    }
  }
  captures += next.captured.capturedBuckets();
  for (PooledContext &context : next.pool.contexts()) {
    countCaptures(context);
    for (const std::string &note : context.context.notes())
      if (&context == &next.pool.contexts().front())
        tell(LogLevel::Warning, [&] { return note; });
  }
}

void Session::Impl::countCaptures(PooledContext &context) {
  const size_t captured = implOf(context.context).capturedBuckets();
  const size_t added = captured - std::exchange(context.captured, captured);
  captures += added;
  if (added > 0)
    tell(LogLevel::Info, [&] {
      return "a context of GPU " + std::to_string(context.device) + " captured " +
             std::to_string(added) + (added == 1 ? " bucket" : " buckets");
    });
}

void Session::Impl::countFailure(const Status &status) {
  ++failures;
  const uint64_t number = ++failuresByCode[size_t(status.code())];
  if (isPowerOfTen(number))
    tell(LogLevel::Warning, [&] {
      return "a request failed (" + std::string(codeName(status.code())) + ", " +
             std::to_string(number) + " so far): " + status.message();
    });
  if (status.code() == Code::Device && !isHealthy() && !toldOfLoss.exchange(true))
    tell(LogLevel::Error, [&] { return "the session has lost a device: " + status.message(); });
}

bool Session::Impl::isHealthy() const {
  const std::lock_guard lock(mutex);
  return std::ranges::all_of(served->engines, [](const std::unique_ptr<Engine> &engine) {
    return implOf(*engine).fault.check().isOk();
  });
}

void Session::Impl::tell(LogLevel level, const std::function<std::string()> &text) const {
  if (!options.log)
    return;
  try {
    options.log(level, text());
  } catch (...) { // NOLINT(bugprone-empty-catch): A message is not worth a failed request.
  }
}

} // namespace cgc
