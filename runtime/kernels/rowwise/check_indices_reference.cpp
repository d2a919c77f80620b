// Reference of check_indices.
#include "runtime/kernels/reference_elements.h"
#include "runtime/kernels/rowwise/check_indices.h"

namespace cgc::reference {
namespace {

void checkIndices(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  const CheckIndicesNumbers numbers = CheckIndicesNumbers::of(a.ints);
  const int64_t *const report = dataOf<int64_t>(a.reads[1]);
  int64_t *const y = resultOf<int64_t>(a.writes[0]);
  std::copy_n(report, kReportNumbers, y);
  if (report[kReportedCheck] != 0)
    return;
  withType(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>)
      for (int64_t i = 0, elements = elementsOf(x); i < elements; ++i) {
        int64_t at = 0, rest = i;
        for (size_t d = x.sizes.size(); d-- > 0; rest /= x.sizes[d])
          at += rest % x.sizes[d] * strideOf(x, d);
        const int64_t index = int64_t(+dataOf<T>(x)[at]);
        if ((index >= numbers.least && index < numbers.end) || index == numbers.exempt)
          continue;
        const int64_t found[] = {numbers.check, i, index, numbers.begin, numbers.count,
                                 numbers.total};
        std::ranges::copy(found, y);
        return;
      }
  });
}

} // namespace

CGC_REFERENCE(check_indices, checkIndices)

} // namespace cgc::reference
