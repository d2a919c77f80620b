// Tensors in host memory: random values that are the same on every machine, conversions, and
// comparison.
#pragma once

#include "frontend/frontend.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <cstdint>
#include <vector>

namespace cgc::tool {

using frontend::HostTensor;

/// A tensor of zeros.
HostTensor makeTensor(std::string name, DType dtype, std::vector<int64_t> sizes);
/// A dense view of `tensor`, which must not move while the view is in use.
TensorView viewOf(HostTensor &tensor);
/// A dense view of each tensor, in order. The tensors must not move while the views are in use.
std::vector<TensorView> viewsOf(std::vector<HostTensor> &tensors);

/// Random values for an input, the same on every machine for the same seed. Floats are from -6 to 6
/// with a distribution close to the standard normal one. Integers are uniform in the range that the
/// plan allows (0 and 1 if it has no bound). Bools are uniform.
HostTensor randomInput(const IoTensor &input, uint64_t seed);

/// All elements as doubles, in order.
std::vector<double> toDoubles(const HostTensor &tensor);
/// Converts `tensor` to `dtype`, rounding to nearest even. Both dtypes are floating.
HostTensor convertFloats(const HostTensor &tensor, DType dtype);

/// Distances of `actual` from `expected`. NaN if either holds a NaN or an infinity.
struct Closeness {
  double maxAbs = 0;
  /// |actual - expected| / |expected|, or the numerator if the denominator is 0.
  double relativeL2 = 0;
  double cosine = 1; ///< 1 if both are all zeros.
};
/// Compares two lists with the same number of elements.
Closeness compareValues(const std::vector<double> &actual, const std::vector<double> &expected);

} // namespace cgc::tool
