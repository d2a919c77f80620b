// Reference of where.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

void whereHolds(const ReferenceArguments &a) {
  const TensorView &condition = a.reads[0], &x = a.reads[1], &z = a.reads[2], &y = a.writes[0];
  withType(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    // An absent operand is its number.
    const T numbers[] = {x.data ? T{} : elementOf<T>(a.floats[0]),
                         z.data ? T{} : elementOf<T>(a.floats[1])};
    const T *const first = x.data ? dataOf<T>(x) : &numbers[0];
    const T *const second = z.data ? dataOf<T>(z) : &numbers[1];
    forElements<4>({&y, &condition, &x, &z}, [&](const auto &at) {
      const bool holds = !condition.data || dataOf<Bool>(condition)[at[1]];
      resultOf<T>(y)[at[0]] = holds ? first[at[2]] : second[at[3]];
    });
  });
}

} // namespace

CGC_REFERENCE(where, whereHolds)

} // namespace cgc::reference
