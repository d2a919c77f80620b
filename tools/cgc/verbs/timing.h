// Timing: how anything that runs again and again is measured: warm-up, latency, back-to-back.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace cgc::tool {

/// From fewer, a p90 or p99 says nothing.
inline constexpr int kMinSamples = 30;

using Clock = std::chrono::steady_clock;
double millisSince(Clock::time_point start);

/// Several measurements of one figure.
class Samples final {
public:
  Samples() = default;
  explicit Samples(std::vector<double> values);
  void add(double value);
  /// The smallest value that at least this share of the values does not exceed.
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
  /// min, median, p90 and p99.
  nlohmann::ordered_json json() const;

private:
  std::vector<double> values_; ///< Sorted.
};

struct Timing {
  Samples latency; ///< A run alone, from the call to its results.
  Samples submit;  ///< The call alone.
  /// Each of runs in a row with one wait at the end, `runsPerSample` of them.
  Samples backToBack;
  int runsPerSample = 0;
};

/// Warms up, and takes so many samples of each figure. `wait` returns when everything that `run`
/// began is done.
Result<Timing> timeRuns(const std::function<Status()> &run, const std::function<Status()> &wait,
                        int samples);

} // namespace cgc::tool
