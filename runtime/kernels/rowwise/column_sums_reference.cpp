// References of column_sums_*.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void columnSums(const ReferenceArguments &a) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  for (int64_t i = 0; i < columns; ++i)
    resultOf<float>(a.writes[0])[i] =
        sumOf(rows, [&](int64_t row) { return toFloat(dataOf<T>(a.reads[0])[row * columns + i]); });
}

} // namespace

CGC_REFERENCE(column_sums_f16, columnSums<F16>)
CGC_REFERENCE(column_sums_bf16, columnSums<BF16>)

} // namespace cgc::reference
