// The tuner's decisions that need no GPU.
#include "tuner/decisions.h"

#include "runtime/exec/requirements.h"

#include <algorithm>

namespace cgc::tuner {
namespace {

/// The least relative gain of the bucket's time for which the plan's own choice is replaced. Less
/// is noise.
constexpr double kMinGain = 0.002;

} // namespace

double median(std::vector<double> samples) {
  const auto middle = samples.begin() + ptrdiff_t(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return *middle;
}

size_t winnerOf(std::span<const std::vector<double>> samples) {
  const size_t own = samples.size() - 1;
  const auto best = size_t(std::ranges::min_element(samples, {}, median) - samples.begin());
  return median(samples[best]) < median(samples[own]) * (1 - kMinGain) ? best : own;
}

backend::Arch archOf(const PlanData &plan) {
  return requirementsOf(plan).needsSm90a() ? backend::Arch::Sm90a : backend::Arch::Sm80;
}

} // namespace cgc::tuner
