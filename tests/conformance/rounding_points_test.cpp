// The points where kernels round to 16 bits before the end, exactly: a GEMM's epilogue, and
// attention's weights. The bounds of the other tests are too wide to see them.
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/conformance/gemm_numbers.h"

namespace cgc::test {
namespace {

class RoundingPoints : public HopperGemmTest {
protected:
  static double rounded(DType dtype, double value) {
    return decodeAll(dtype, encode(dtype, std::vector<double>{value}))[0];
  }

  /// Runs the reference of an attention kernel with one query and one head of 64 columns.
  HostTensor attend(Launch launch, DType dtype, int64_t keys, double weight);
  void checkAttention(const Launch &launch, DType dtype, int64_t keys, bool roundsDivisor);
};
CGC_ON_ALL_EXECUTORS(RoundingPoints);

/// round(round(silu(round(x w + bias))) + residual). Silu at 2 has a slope of 1.09 and results with
/// half of its argument's spacing, so that its argument's rounding moves the result by one unit.
/// The residual cancels most of the result, so that the result's rounding is seen.
TEST_P(RoundingPoints, GemmAfterBiasActivationAndResidual) {
  constexpr int64_t kM = 3, kN = 72, kK = 200;
  constexpr double kResidual = -1.75;
  const auto silu = [](double x) { return activate(Activation::Silu, x); };
  for (const DType dtype : kHalves) {
    const double spacing = 4 * rounding(dtype); // Of the numbers from 2 to 4.
    const double sum = 2 + spacing, bias = spacing * 15 / 32;
    std::vector<double> x(kM * kK), w(kN * kK);
    for (int64_t m = 0; m < kM; ++m)
      x[m * kK] = 1;
    for (int64_t n = 0; n < kN; ++n)
      w[n * kK] = sum;
    Numbers numbers(dtype, kM, kN, kK, std::move(x), std::move(w));
    numbers.bias.assign(kN, bias);
    numbers.residual.assign(kM * kN, kResidual);
    const double activated = silu(rounded(dtype, sum + bias)),
                 expected = rounded(dtype, rounded(dtype, activated) + kResidual);
    ASSERT_NE(expected, rounded(dtype, rounded(dtype, silu(sum + bias)) + kResidual));
    ASSERT_NE(expected, rounded(dtype, activated + kResidual));
    for (const GemmTile &tile : gemmTiles())
      if (tile.takes(kK) && !HasFatalFailure())
        expectEqual(launch(launchOf("gemm", tile, numbers,
                                    {.bias = true,
                                     .residual = true,
                                     .strided = false,
                                     .wIsWeight = true,
                                     .activation = Activation::Silu,
                                     .stages = mostStages(tile)}))[0],
                    [&](uint64_t) { return expected; });
  }
}

/// The softmax weighs the first key by 1 and each other one by `weight`, a number below 1. Column 0
/// of v cancels if all other weights are 0.5; all other columns are 1.
HostTensor RoundingPoints::attend(Launch launch, DType dtype, int64_t keys, double weight) {
  constexpr int64_t kWidth = 64;
  std::vector<double> q(kWidth), k(keys * kWidth), v(keys * kWidth, 1);
  q[0] = 1;
  for (int64_t key = 1; key < keys; ++key)
    k[key * kWidth] = -1;
  v[0] = -0.5 * double(keys - 1);
  launch.reads = {withValues(emptyTensor(dtype, {1, 1, 1, kWidth}), q),
                  withValues(emptyTensor(dtype, {1, 1, keys, kWidth}), k),
                  withValues(emptyTensor(dtype, {1, 1, keys, kWidth}), v)};
  if (launch.kernel.starts_with(named("attention", dtype)))
    launch.reads.emplace_back(); // No mask.
  launch.writes = {emptyTensor(dtype, {1, 1, 1, kWidth})};
  launch.floats = {-std::log(weight)};
  return launchReference(launch)[0];
}

/// Weights just below the middle of 0.5 and the next number round to 0.5. Their sum, the divisor,
/// has them before or after.
void RoundingPoints::checkAttention(const Launch &launch, DType dtype, int64_t keys,
                                    bool roundsDivisor) {
  SCOPED_TRACE(launch.kernel);
  const HostTensor y = attend(launch, dtype, keys, 0.5 * (1 + 0.95 * rounding(dtype)));
  EXPECT_EQ(y.at(0), 0) << "weights multiply v before they are rounded";
  EXPECT_EQ(y.at(1), roundsDivisor ? 1 : 1 - rounding(dtype));
}

/// References only: kernels scale weights by other powers than that of the largest score.
TEST_P(RoundingPoints, AttentionWeights) {
  for (const DType dtype : kHalves) {
    checkAttention({.kernel = named("attention", dtype) + "_64",
                    .blocks = 1,
                    .threads = 32,
                    .ints = {1, 1, 1, 64, /*causal=*/0, /*splits=*/1},
                    .sharedBytes = attentionSharedBytes(64, 64, /*warps=*/1, /*splits=*/1)},
                   dtype, 64, /*roundsDivisor=*/false);
    constexpr ResidentKvShape kShape{1, 1, 1};
    checkAttention({.kernel = named("attention_resident_kv", dtype) + "_64",
                    .blocks = 1,
                    .threads = 128,
                    .ints = {1, 1, 1, 64, /*causal=*/0, kShape.tiles, kShape.stages},
                    .sharedBytes = kShape.sharedBytes(1, 64)},
                   dtype, 64, /*roundsDivisor=*/true);
    checkAttention({.kernel = named("attention_split_kv", dtype),
                    .blocks = 1,
                    .threads = 256,
                    .ints = {1, 1, 1, 145},
                    .sharedBytes = kSplitKvSharedBytes},
                   dtype, 145, /*roundsDivisor=*/true);
  }
}

} // namespace
} // namespace cgc::test
