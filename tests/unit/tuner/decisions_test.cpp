// The tuner's decisions without a GPU: a choice replaces the plan's own only for more than the
// noise, and a plan without kernels for sm_90a gets none.
#include "tests/unit/tuner/gemm_chain.h"
#include "tuner/decisions.h"

#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using namespace cgc::tuner;
using Samples = std::vector<std::vector<double>>;

TEST(Median, IsOfUnsortedSamples) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 7}), 7);
}

/// The last choice is the plan's own.
TEST(WinnerOf, ReplacesTheOwnChoiceForMoreThanTheNoise) {
  EXPECT_EQ(winnerOf(Samples{{1000}}), 0u);
  EXPECT_EQ(winnerOf(Samples{{997}, {1000}}), 0u);
  EXPECT_EQ(winnerOf(Samples{{999}, {1000}}), 1u) << "a gain of 0.1 % is noise";
  EXPECT_EQ(winnerOf(Samples{{1001}, {1000}}), 1u);
  EXPECT_EQ(winnerOf(Samples{{990}, {980}, {985}, {1000}}), 1u);
}

/// One slow sample of nine, or one fast one, decides nothing.
TEST(WinnerOf, ComparesMedians) {
  const std::vector<double> own(9, 1000);
  EXPECT_EQ(winnerOf(Samples{{5000, 900, 900}, {950, 950, 950}, own}), 0u);
  EXPECT_EQ(winnerOf(Samples{{500, 1100, 1100}, {950, 950, 950}, own}), 1u);
}

TEST(ArchOf, IsSm90aOnlyForAPlanWithItsKernels) {
  const auto chain = [](MadeOf made) {
    return gemmChain(DType::F16, made, [](int, int64_t) { return std::vector<std::byte>(); }).plan;
  };
  EXPECT_EQ(archOf(chain(MadeOf::Tiles)), backend::Arch::Sm90a);
  EXPECT_EQ(archOf(chain(MadeOf::Calls)), backend::Arch::Sm80);
}

} // namespace
} // namespace cgc::test
