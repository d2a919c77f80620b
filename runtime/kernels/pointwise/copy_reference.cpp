// Reference of copy: strided copies and conversions.
#include "runtime/kernels/reference_elements.h"

#include <limits>
#include <type_traits>

namespace cgc::reference {
namespace {

/// Truncates as a GPU does (PTX ISA, cvt): saturates; NaN becomes 0, or the least i64.
template <class To> To truncate(float value) {
  constexpr auto kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
  if (value != value)
    return sizeof(To) == 8 ? kLeast : To(0);
  if (value < static_cast<float>(kLeast))
    return kLeast;
  return value >= static_cast<float>(kMost) ? kMost : static_cast<To>(value);
}

template <class To, class From> To convert(From value) {
  if constexpr (std::is_same_v<From, To>)
    return value;
  else if constexpr (kIsHalf<From>)
    return convert<To>(toFloat(value));
  else if constexpr (std::is_same_v<To, Bool>)
    return value != From(0);
  else if constexpr (kIsHalf<To>)
    return fromFloat<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, uint8_t>)
    return static_cast<To>(truncate<int64_t>(value)); // Negative numbers wrap around.
  else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>)
    return truncate<To>(value);
  else
    return static_cast<To>(value);
}

void copyElements(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0], &y = a.writes[0];
  withType(x.dtype, [&](auto from) {
    withType(y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      forElements<2>({&y, &x}, [&](const auto &at) {
        resultOf<To>(y)[at[0]] = convert<To>(dataOf<From>(x)[at[1]]);
      });
    });
  });
}

} // namespace

CGC_REFERENCE(copy, copyElements)

} // namespace cgc::reference
