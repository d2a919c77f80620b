// BatchCurve: interpolation and the choice of batches.
#include "driver/batch_curve.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

namespace cgc::driver {

double BatchCurve::at(int64_t batch) const {
  const auto next = std::ranges::lower_bound(batches, batch);
  if (next == batches.begin())
    return micros.front();
  if (next == batches.end())
    return micros.back();
  const size_t i = next - batches.begin();
  const double part = static_cast<double>(batch - batches[i - 1]) /
                      static_cast<double>(batches[i] - batches[i - 1]);
  return std::lerp(micros[i - 1], micros[i], part);
}

std::vector<int64_t> sampledBatches(int64_t most) {
  std::vector<int64_t> batches;
  for (int64_t power = 1; power < most; power *= 2) {
    batches.push_back(power);
    if (const int64_t mean = power + power / 2; mean != power && mean < most)
      batches.push_back(mean);
  }
  batches.push_back(most);
  return batches;
}

std::vector<int64_t> chooseBatches(llvm::ArrayRef<BatchCurve> curves, int64_t most, double waste) {
  const auto suffices = [&](int64_t chosen, int64_t batch) {
    return llvm::all_of(curves, [&](const BatchCurve &curve) {
      return curve.at(chosen) <= (1 + waste) * curve.at(batch);
    });
  };
  // From the largest batch down, each covers as many as it can.
  std::vector<int64_t> batches;
  for (int64_t batch = most; batch > 0; --batch)
    if (batches.empty() || !suffices(batches.back(), batch))
      batches.push_back(batch);
  std::ranges::reverse(batches);
  return batches;
}

} // namespace cgc::driver
