// References of softmax_*.
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

template <class T> void softmax(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const int64_t columns = x.sizes.back(), rows = elementsOf(x) / columns;
  std::vector<float> values(columns);
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(dataOf<T>(x) + row * columns, columns, values.data());
    float largest = -INFINITY;
    for (float value : values)
      largest = std::fmax(largest, value); // As in the kernel, a NaN is no maximum.
    for (float &value : values)
      value = std::exp(value - largest);
    const float sum = sumOf(columns, [&](int64_t i) { return values[i]; });
    for (float &value : values)
      value /= sum;
    storeRow(values.data(), columns, resultOf<T>(a.writes[0]) + row * columns);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(softmax, softmax)

} // namespace cgc::reference
