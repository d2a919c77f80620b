// The comparison of a kernel's results with its reference's, which runs on a GPU only.
#include "tests/conformance/kernel_fixture.h"

#include <gtest/gtest-spi.h>

namespace cgc::test {
namespace {

std::vector<HostTensor> resultOf(double element) {
  return {withValues(emptyTensor(DType::F16, {2}), {1, element})};
}

TEST(ExpectAgreement, TakesRoundingsAndEqualKindsOfNumbers) {
  expectAgreement(resultOf(2), resultOf(2 + 0x1p-9));
  expectAgreement(resultOf(INFINITY), resultOf(INFINITY));
  expectAgreement(resultOf(NAN), resultOf(NAN));
}

TEST(ExpectAgreement, FailsForOtherNumbers) {
  EXPECT_NONFATAL_FAILURE(expectAgreement(resultOf(2), resultOf(3)),
                          "result 0 and the reference's");
}

TEST(ExpectAgreement, FailsForAnElementThatIsFiniteOnOneSideOnly) {
  for (const double special : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    static double other;
    other = special;
    EXPECT_FATAL_FAILURE(expectAgreement(resultOf(2), resultOf(other)), "element 1 of result 0");
    EXPECT_FATAL_FAILURE(expectAgreement(resultOf(other), resultOf(2)), "element 1 of result 0");
  }
}

} // namespace
} // namespace cgc::test
