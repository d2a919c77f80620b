// References of softmax_* and log_softmax_*.
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

template <class T, bool Log> void softmax(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const int64_t columns = x.sizes.back(), rows = elementsOf(x) / columns;
  std::vector<float> values(columns);
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(dataOf<T>(x) + row * columns, columns, values.data());
    float largest = -INFINITY;
    for (float value : values)
      largest = std::fmax(largest, value); // As in the kernel, a NaN is no maximum.
    const float sum = sumOf(columns, [&](int64_t i) { return std::exp(values[i] - largest); });
    for (float &value : values)
      value = Log ? value - largest - std::log(sum) : std::exp(value - largest) / sum;
    storeRow(values.data(), columns, resultOf<T>(a.writes[0]) + row * columns);
  }
}

} // namespace

CGC_REFERENCE(softmax_f32, (softmax<float, false>))
CGC_REFERENCE(softmax_f16, (softmax<F16, false>))
CGC_REFERENCE(softmax_bf16, (softmax<BF16, false>))
CGC_REFERENCE(log_softmax_f32, (softmax<float, true>))
CGC_REFERENCE(log_softmax_f16, (softmax<F16, true>))
CGC_REFERENCE(log_softmax_bf16, (softmax<BF16, true>))

} // namespace cgc::reference
