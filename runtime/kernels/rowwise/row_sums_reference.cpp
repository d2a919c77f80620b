// References of row_sums_*.
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

template <class T> void rowSums(const ReferenceArguments &a) {
  const int64_t columns = a.ints[0], rows = elementsOf(a.reads[0]) / columns,
                splits = elementsOf(a.writes[0]) / rows;
  const int64_t part = ((columns + splits - 1) / splits + 7) / 8 * 8;
  for (int64_t i = 0; i < rows * splits; ++i) {
    const int64_t begin = i % splits * part;
    const T *const x = dataOf<T>(a.reads[0]) + i / splits * columns + begin;
    float sum = sumOf(std::min(part, columns - begin), [&](int64_t column) {
      const float value = toFloat(x[column]);
      return a.ints[1] ? value * value : value;
    });
    sum *= static_cast<float>(a.floats[0]);
    storeSum<T>(a.writes[0], i, a.ints[2] ? std::sqrt(sum) : sum);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(row_sums, rowSums)

} // namespace cgc::reference
