// Arrivals: a Poisson process for an open loop, the present for a closed one.
#include "tools/cgc/load/arrivals.h"

#include <cmath>

namespace cgc::tool {
namespace {

Clock::duration toDuration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

} // namespace

Arrivals::Arrivals(const std::vector<RequestKind> &kinds, double rate, Clock::time_point start,
                   double seconds)
    : picker_(kinds, /*seed=*/1), rate_(rate), last_(start), end_(start + toDuration(seconds)) {}

Arrival Arrivals::schedule() {
  // The times between the arrivals of independent users have an exponential distribution.
  last_ += toDuration(-std::log1p(-picker_.uniform()) / rate_);
  return {last_, picker_.next()};
}

std::optional<Arrival> Arrivals::next() {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (rate_ == 0)
    return now < end_ ? std::optional(Arrival{now, picker_.next()}) : std::nullopt;
  if (refused_)
    return std::nullopt;
  const Arrival arrival = schedule();
  if (now < end_ && arrival.due < end_)
    return arrival;
  refused_ = arrival;
  return std::nullopt;
}

uint64_t Arrivals::backlog() {
  uint64_t count = 0;
  for (; refused_ && refused_->due < end_; refused_ = schedule())
    ++count;
  return count;
}

} // namespace cgc::tool
