// Timing: measures repeated runs: warm-up, latency, and back-to-back time.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace cgc::tool {

/// With fewer samples, p90 and p99 are meaningless.
inline constexpr int kMinSamples = 30;

using Clock = std::chrono::steady_clock;
double millisSince(Clock::time_point start);

/// A set of measurements of one quantity.
class Samples final {
public:
  Samples() = default;
  explicit Samples(std::vector<double> values);
  void add(double value);
  /// The smallest value that is at least as large as this share of the values.
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
  /// min, median, p90 and p99.
  nlohmann::ordered_json json() const;

private:
  std::vector<double> values_; ///< Sorted.
};

struct Timing {
  Samples latency; ///< One run alone, from the call to its results.
  Samples submit;  ///< The call of one run alone.
  /// Time per run of `runsPerSample` runs in a row with one wait at the end.
  Samples backToBack;
  int runsPerSample = 0;
};

/// Warms up and takes `samples` samples of each quantity. `wait` returns when everything that `run`
/// started has completed.
Result<Timing> timeRuns(const std::function<Status()> &run, const std::function<Status()> &wait,
                        int samples);

} // namespace cgc::tool
