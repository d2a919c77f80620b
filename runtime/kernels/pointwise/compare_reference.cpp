// References of compare_*.
#include "runtime/kernels/pointwise/compare.h"

#include "runtime/kernels/reference_elements.h"

#include <type_traits>

namespace cgc::reference {
namespace {

template <class V> bool holds(CompareOp op, V x, V z) {
  switch (op) {
  case CompareOp::Eq:
    return x == z;
  case CompareOp::Ne:
    return x != z;
  case CompareOp::Lt:
    return x < z;
  case CompareOp::Le:
    return x <= z;
  case CompareOp::Gt:
    return x > z;
  case CompareOp::Ge:
    return x >= z;
  }
  return false;
}

template <class T> void compare(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0], &z = a.reads[1], &y = a.writes[0];
  const T number = z.data ? T{} : elementOf<T>(a.floats[0]);
  const T *const second = z.data ? dataOf<T>(z) : &number;
  forElements<3>({&y, &x, &z}, [&](const auto &at) {
    resultOf<Bool>(y)[at[0]] =
        holds(CompareOp(a.ints[0]), comparable(dataOf<T>(x)[at[1]]), comparable(second[at[2]]));
  });
}

} // namespace

CGC_FLOAT_REFERENCES(compare, compare)
CGC_REFERENCE(compare_i64, compare<int64_t>)
CGC_REFERENCE(compare_i32, compare<int32_t>)
CGC_REFERENCE(compare_bool, compare<Bool>)

} // namespace cgc::reference
