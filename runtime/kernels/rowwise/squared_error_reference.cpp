// Reference of squared_error_f32.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

void squaredError(const ReferenceArguments &a) {
  const float *const x = dataOf<float>(a.reads[0]), *const target = dataOf<float>(a.reads[1]);
  const auto lossFactor = float(a.floats[0]), gradientFactor = float(a.floats[1]);
  const float sum = sumOf(a.ints[0], [&](int64_t i) {
    const float difference = x[i] - target[i];
    return difference * difference;
  });
  for (int64_t i = 0; i < a.ints[0]; ++i)
    resultOf<float>(a.writes[1])[i] = gradientFactor * (x[i] - target[i]);
  *resultOf<float>(a.writes[0]) = lossFactor * sum;
}

} // namespace

CGC_REFERENCE(squared_error_f32, squaredError)

} // namespace cgc::reference
