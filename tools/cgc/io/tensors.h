// Tensors in host memory: random values that are the same everywhere, conversions, and closeness.
#pragma once

#include "frontend/frontend.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <cstdint>
#include <vector>

namespace cgc::tool {

using frontend::HostTensor;

/// Zeros of this dtype and these sizes.
HostTensor makeTensor(std::string name, DType dtype, std::vector<int64_t> sizes);
/// A dense view. Borrows from `tensor`, which must stay where it is.
TensorView viewOf(HostTensor &tensor);
/// A dense view of each tensor, in order. Borrows.
std::vector<TensorView> viewsOf(std::vector<HostTensor> &tensors);

/// Values for an input, the same on every machine: floats from -6 to 6 with a distribution close to
/// the standard normal one, integers evenly from the range that the plan allows (0 and 1 where it
/// knows no bound), bools evenly.
HostTensor randomInput(const IoTensor &input, uint64_t seed);

/// Every element as a double, in order.
std::vector<double> toDoubles(const HostTensor &tensor);
/// Elements converted to `dtype`, floats rounded to nearest even. Only between floating dtypes.
HostTensor convertFloats(const HostTensor &tensor, DType dtype);

/// How far `actual` is from `expected`. NaN if either holds a NaN or an infinity.
struct Closeness {
  double maxAbs = 0;
  double relativeL2 =
      0; ///< |actual - expected| / |expected|; the numerator where the denominator is 0.
  double cosine = 1; ///< 1 where both are all zeros.
};
/// Both hold the same number of elements.
Closeness compareValues(const std::vector<double> &actual, const std::vector<double> &expected);

} // namespace cgc::tool
