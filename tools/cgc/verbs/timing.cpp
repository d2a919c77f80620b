// Timing: warms up and takes the samples of latency, submit and back-to-back.
#include "tools/cgc/verbs/timing.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cgc::tool {
namespace {

constexpr int kWarmUps = 20, kMinWarmUps = 3;
constexpr double kWarmUpMillis = 2000;
/// The number of back-to-back runs of a sample, unless they would take longer than kSampleMillis.
constexpr int kRunsPerSample = 40;
constexpr double kSampleMillis = 50;

} // namespace

double millisSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Samples::Samples(std::vector<double> values) : values_(std::move(values)) {
  std::ranges::sort(values_);
}

void Samples::add(double value) {
  values_.insert(std::ranges::upper_bound(values_, value), value);
}

double Samples::quantile(double share) const {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values_.size())));
  return values_[std::max<size_t>(rank, 1) - 1];
}

nlohmann::ordered_json Samples::json() const {
  return {{"min", values_.front()},
          {"median", median()},
          {"p90", quantile(0.9)},
          {"p99", quantile(0.99)}};
}

Result<Timing> timeRuns(const std::function<Status()> &run, const std::function<Status()> &wait,
                        int samples) {
  Timing timing;
  const auto begin = Clock::now();
  for (int i = 0; i < kMinWarmUps || (i < kWarmUps && millisSince(begin) < kWarmUpMillis); ++i)
    CGC_TRY(run());
  CGC_TRY(wait());

  for (int i = 0; i < samples; ++i) {
    const auto start = Clock::now();
    CGC_TRY(run());
    timing.submit.add(millisSince(start));
    CGC_TRY(wait());
    timing.latency.add(millisSince(start));
  }
  const double runs = kSampleMillis / timing.latency.median();
  timing.runsPerSample = static_cast<int>(std::clamp<double>(runs, 1, kRunsPerSample));
  for (int i = 0; i < samples; ++i) {
    const auto start = Clock::now();
    for (int j = 0; j < timing.runsPerSample; ++j)
      CGC_TRY(run());
    CGC_TRY(wait());
    timing.backToBack.add(millisSince(start) / timing.runsPerSample);
  }
  return timing;
}

} // namespace cgc::tool
