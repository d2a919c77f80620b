// The activations of products over every number of f16 and bf16, against double precision.
#include "tests/conformance/product_numbers.h"

namespace cgc::test {
namespace {

class ProductActivations : public ProductKernelTest {};
CGC_ON_BOTH_EXECUTORS(ProductActivations);

/// Every number of the dtype as a sum, in two features of a token, then tokens of nothing but
/// infinity, -infinity and NaN. The weights are two identities, below each other, and a column of
/// ones: 0 times infinity would be NaN. Finite numbers of one token have like exponents, so that a
/// sum is exact even if a product with 0 counts as small, not as nothing.
Numbers everyNumber(DType dtype) {
  constexpr int64_t kRow = 128, kDepth = kRow + 8, kFeatures = 2 * kRow;
  std::vector<uint16_t> patterns(1 << 16);
  std::iota(patterns.begin(), patterns.end(), uint16_t(0));
  const auto bytes = std::as_bytes(std::span(patterns));
  const std::vector<double> all = decodeAll(dtype, {bytes.begin(), bytes.end()});
  std::vector<double> x, w(kFeatures * kDepth);
  // The first that is not finite is a multiple of kRow.
  for (size_t i = 0; i < all.size(); i += kRow)
    if (std::isfinite(all[i])) {
      x.insert(x.end(), all.begin() + i, all.begin() + i + kRow);
      x.resize(x.size() + kDepth - kRow);
    }
  for (const double special : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    x.resize(x.size() + kDepth);
    x[x.size() - kDepth + kRow] = special;
  }
  for (int64_t f = 0; f < kFeatures; ++f)
    w[f * kDepth + f % kRow] = w[f * kDepth + kRow] = 1;
  const int64_t tokens = std::ssize(x) / kDepth;
  return {dtype, tokens, kFeatures, kDepth, std::move(x), std::move(w)};
}

/// What `activation` makes of `x`. Where exact GELU is a difference from max(x, 0), -infinity gives
/// its limit.
double expected(Activation activation, double x) {
  return activation == Activation::Gelu && x == -INFINITY ? 0 : activate(activation, x);
}

/// How far off the result may be.
double tolerance(Activation activation, DType dtype, double want) {
  // Tensor cores may take numbers below bf16's normal ones for 0, divisions give 0 beyond 2^126.
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
  // An exponent of up to 127, rounded to f32, and what leads to it.
  return rounded + 2e-5 * std::abs(want);
}

TEST_P(ProductActivations, OfEveryNumber) {
  for (const DType dtype : kHalves) {
    const Numbers n = everyNumber(dtype);
    ASSERT_EQ(n.tokens, (dtype == DType::F16 ? 2 * 248 : 2 * 255) + 3);
    for (int kind = 0; kind < kNumActivations; ++kind) {
      const auto activation = Activation(kind);
      std::vector<double> want, tolerances;
      for (const double sum : n.sums) {
        want.push_back(expected(activation, sum));
        tolerances.push_back(tolerance(activation, dtype, want.back()));
      }
      for (const ProductTile &tile : productTiles()) {
        if (!tile.takes(n.depth))
          continue;
        const Variant variant{.bias = false,
                              .residual = false,
                              .strided = false,
                              .wIsWeight = true,
                              .activation = activation,
                              .stages = mostStages(tile)};
        SCOPED_TRACE(kernelOf("product", tile, dtype) + " " + describe(n, variant));
        const HostTensor y = launch(launchOf("product", tile, n, variant))[0];
        for (uint64_t i = 0; i < y.elements(); ++i) {
          const double got = y.at(i);
          if (std::isfinite(want[i]))
            ASSERT_NEAR(got, want[i], tolerances[i]) << "of " << n.sums[i];
          else
            ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got) : got == want[i])
                << got << " of " << n.sums[i];
        }
      }
    }
  }
}

} // namespace
} // namespace cgc::test
