// References of normalize_*.
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

template <class T> void normalize(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const int64_t columns = x.sizes.back(), rows = elementsOf(x) / columns;
  const auto eps = static_cast<float>(a.floats[0]);
  std::vector<float> values(columns);
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(dataOf<T>(x) + row * columns, columns, values.data());
    const float length =
        std::sqrt(sumOf(columns, [&](int64_t i) { return values[i] * values[i]; }));
    const float divisor = length < eps ? eps : length; // Keeps NaN.
    for (float &value : values)
      value /= divisor;
    storeRow(values.data(), columns, resultOf<T>(a.writes[0]) + row * columns);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(normalize, normalize)

} // namespace cgc::reference
