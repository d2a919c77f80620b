// References of argmax_*.
#include "runtime/kernels/reference_elements.h"

#include <type_traits>

namespace cgc::reference {
namespace {

template <class T> void argmax(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const int64_t columns = x.sizes.back(), rows = elementsOf(x) / columns;
  for (int64_t row = 0; row < rows; ++row) {
    const T *const values = dataOf<T>(x) + row * columns;
    int64_t best = 0;
    for (int64_t i = 1; i < columns; ++i) {
      const auto value = comparable(values[i]), most = comparable(values[best]);
      if (value > most || (value != value && most == most)) // NaN is the largest.
        best = i;
    }
    resultOf<int64_t>(a.writes[0])[row] = best;
  }
}

} // namespace

CGC_FLOAT_REFERENCES(argmax, argmax)
CGC_REFERENCE(argmax_i64, argmax<int64_t>)
CGC_REFERENCE(argmax_i32, argmax<int32_t>)

} // namespace cgc::reference
