// The activations of GEMM epilogues for every number of f16 and bf16, against double precision.
#include "tests/conformance/gemm_numbers.h"

namespace cgc::test {
namespace {

class GemmActivations : public GemmKernelTest {};
CGC_ON_ALL_EXECUTORS(GemmActivations);

/// A GEMM whose accumulators are every finite number of the dtype, each in two columns of a row,
/// followed by rows of infinity, -infinity and NaN. The weights are two stacked identity matrices
/// and a column of ones, which carries the special values because 0 times infinity is NaN. The
/// numbers of a row have similar exponents, so that an accumulator is exact even if the hardware
/// treats a product with 0 as a tiny number.
Numbers everyNumber(DType dtype) {
  constexpr int64_t kRow = 128, kK = kRow + 8, kN = 2 * kRow;
  std::vector<uint16_t> patterns(1 << 16);
  std::iota(patterns.begin(), patterns.end(), uint16_t(0));
  const auto bytes = std::as_bytes(std::span(patterns));
  const std::vector<double> all = decodeAll(dtype, {bytes.begin(), bytes.end()});
  std::vector<double> x, w(kN * kK);
  // The index of the first number that is not finite is a multiple of kRow.
  for (size_t i = 0; i < all.size(); i += kRow)
    if (std::isfinite(all[i])) {
      x.insert(x.end(), all.begin() + i, all.begin() + i + kRow);
      x.resize(x.size() + kK - kRow);
    }
  for (const double special : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    x.resize(x.size() + kK);
    x[x.size() - kK + kRow] = special;
  }
  for (int64_t f = 0; f < kN; ++f)
    w[f * kK + f % kRow] = w[f * kK + kRow] = 1;
  const int64_t m = std::ssize(x) / kK;
  return {dtype, m, kN, kK, std::move(x), std::move(w)};
}

/// The expected result. The kernel computes GELU as a difference from max(x, 0), for which
/// -infinity gives the limit 0.
double expected(Activation activation, double x) {
  return activation == Activation::Gelu && x == -INFINITY ? 0 : activate(activation, x);
}

/// The error that the result may have.
double tolerance(Activation activation, DType dtype, double want) {
  // Tensor cores may flush bf16 subnormals to 0, and fast division gives 0 for divisors beyond
  // 2^126.
  const double flushed = 1e-35;
  const double rounded = rounding(dtype) * std::abs(want) + smallest(dtype) + flushed;
  switch (activation) {
  case Activation::None:
  case Activation::Relu:
    return flushed;
  case Activation::Gelu:
    return rounded + kGeluError;
  case Activation::GeluTanh:
  case Activation::QuickGelu:
  case Activation::Silu:
  case Activation::Tanh:
    break;
  }
  // The relative error of 2^e for an exponent of up to 127 that is rounded to f32, and of computing
  // it.
  return rounded + 2e-5 * std::abs(want);
}

TEST_P(GemmActivations, OfEveryNumber) {
  for (const DType dtype : kHalves) {
    const Numbers p = everyNumber(dtype);
    ASSERT_EQ(p.m, (dtype == DType::F16 ? 2 * 248 : 2 * 255) + 3);
    for (int kind = 0; kind < kNumActivations; ++kind) {
      const auto activation = Activation(kind);
      std::vector<double> want, tolerances;
      for (const double sum : p.sums) {
        want.push_back(expected(activation, sum));
        tolerances.push_back(tolerance(activation, dtype, want.back()));
      }
      for (const GemmTile &tile : here(gemmTiles())) {
        if (!tile.takes(p.k))
          continue;
        const Variant variant{.bias = false,
                              .residual = false,
                              .strided = false,
                              .wIsWeight = true,
                              .activation = activation,
                              .stages = mostStages(tile)};
        SCOPED_TRACE(kernelOf("gemm", tile, dtype) + " " + describe(p, variant));
        const HostTensor y = launch(launchOf("gemm", tile, p, variant))[0];
        for (uint64_t i = 0; i < y.elements(); ++i) {
          const double got = y.at(i);
          if (std::isfinite(want[i]))
            ASSERT_NEAR(got, want[i], tolerances[i]) << "of " << p.sums[i];
          else
            ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got) : got == want[i])
                << got << " of " << p.sums[i];
        }
      }
    }
  }
}

} // namespace
} // namespace cgc::test
