// Arrivals: when each request of a load begins, and of which kind it is.
#pragma once

#include "tools/cgc/load/request_mix.h"
#include "tools/cgc/verbs/timing.h"

#include <mutex>
#include <optional>

namespace cgc::tool {

/// A request that is to begin at a time, which may have passed.
struct Arrival {
  Clock::time_point due;
  size_t kind = 0;
};

/// Gives the clients of a load their requests until its time is over. Thread-safe.
class Arrivals final {
public:
  /// `rate` is in requests per second; 0 is a closed loop.
  Arrivals(const std::vector<RequestKind> &kinds, double rate, Clock::time_point start,
           double seconds);
  /// The next request. Nothing once the time is over, or if no request arrives until then.
  std::optional<Arrival> next();
  /// The requests that had arrived when the time was over, and that next() did not give out. Call
  /// it once, after the time is over.
  uint64_t backlog();

private:
  Arrival schedule(); ///< The next arrival of an open loop.

  std::mutex mutex_;
  KindPicker picker_;
  const double rate_;
  Clock::time_point last_; ///< The latest arrival of an open loop.
  const Clock::time_point end_;
  std::optional<Arrival> refused_; ///< Scheduled, and not given out because the time was over.
};

} // namespace cgc::tool
