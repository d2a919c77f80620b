// allFinite: each element of each dtype, and the largest numbers.
#include "runtime/train/finite.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace cgc::test {
namespace {

/// allFinite() of three elements: the one at `at` has these bits, the others those of `rest`.
template <class T> bool areFinite(DType dtype, T bits, size_t at, T rest) {
  std::vector<T> elements(3, rest);
  elements[at] = bits;
  return allFinite(std::as_bytes(std::span(elements)), dtype);
}

/// `infinity` has all bits of the exponent; the number before it is the largest, and those behind
/// it are NaN.
template <class T> void expectFinite(DType dtype, T infinity) {
  const T sign = T(1) << (sizeof(T) * 8 - 1);
  for (size_t at = 0; at < 3; ++at)
    for (const T negative : {T(0), sign}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ", element " + std::to_string(at));
      EXPECT_TRUE(areFinite<T>(dtype, T(infinity - 1) | negative, at, 0));
      EXPECT_FALSE(areFinite<T>(dtype, infinity | negative, at, 0));
      EXPECT_FALSE(areFinite<T>(dtype, T(infinity + 1) | negative, at, 0));
    }
}

TEST(AllFinite, LooksAtEachElement) {
  expectFinite<uint32_t>(DType::F32, 0x7f800000);
  expectFinite<uint64_t>(DType::F64, 0x7ff0000000000000);
  expectFinite<uint16_t>(DType::F16, 0x7c00);
  expectFinite<uint16_t>(DType::BF16, 0x7f80);
}

TEST(AllFinite, IntegersAndNothingAre) {
  EXPECT_TRUE(areFinite<uint32_t>(DType::I32, 0x7f800000, 0, 0));
  EXPECT_TRUE(allFinite({}, DType::F32));
}

} // namespace
} // namespace cgc::test
