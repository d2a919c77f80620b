// The product kernels that normalise the rows of x themselves, every tile against double precision,
// at odd shapes and with rows whose mean is far from zero; and the moments that all products write.
#include "tests/conformance/moments.h"
#include "tests/conformance/product_numbers.h"

namespace cgc::test {
namespace {

constexpr double kEps = 1e-5;

/// What normalisation makes of the sums of a product.
struct Rows {
  std::vector<double> mean, magnitude, variance; ///< Of each row of x; magnitude: mean of |x|.
  std::vector<double> columnSums;                ///< Of each row of w, as f32 holds them.
  std::vector<double> columnMagnitudes;

  explicit Rows(const Numbers &n)
      : mean(n.tokens), magnitude(n.tokens), variance(n.tokens), columnSums(n.features),
        columnMagnitudes(n.features) {
    const double depth = double(n.depth);
    for (int64_t t = 0; t < n.tokens; ++t) {
      const double *const row = &n.x[t * n.depth];
      for (int64_t k = 0; k < n.depth; ++k) {
        mean[t] += row[k] / depth;
        magnitude[t] += std::abs(row[k]) / depth;
      }
      for (int64_t k = 0; k < n.depth; ++k)
        variance[t] += (row[k] - mean[t]) * (row[k] - mean[t]) / depth;
    }
    for (int64_t f = 0; f < n.features; ++f) {
      for (int64_t k = 0; k < n.depth; ++k) {
        columnSums[f] += n.w[f * n.depth + k];
        columnMagnitudes[f] += std::abs(n.w[f * n.depth + k]);
      }
      columnSums[f] = float(columnSums[f]);
    }
  }
};

/// Rows of several means and scales; the last one is constant.
std::vector<double> unevenRows(DType dtype, int64_t tokens, int64_t depth) {
  std::vector<double> x = numbers(dtype, tokens * depth, 1);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < depth; ++k) {
      double &value = x[t * depth + k];
      value = t > 0 && t == tokens - 1 ? 0.75 : value * (1 + double(t % 5)) + double(t % 4) - 1;
    }
  return decodeAll(dtype, encode(dtype, x));
}

class ProductNorm : public ProductKernelTest {
protected:
  void check(const ProductTile &tile, const Numbers &n, const Rows &rows, const Variant &v) {
    SCOPED_TRACE(std::string(tile.name) + " " + describe(n, v));
    Launch launch = launchOf("product_norm", tile, n, v);
    launch.reads.push_back(withElements(emptyTensor(DType::F32, {n.features}), rows.columnSums));
    launch.reads.push_back(withElements(emptyMoments(n.tokens, n.depth), momentsOf(n.x, n.tokens)));
    launch.writes.push_back(emptyMoments(n.tokens, n.features));
    launch.floats = {kEps};
    if (v.wIsWeight) // And the sums of its rows.
      launch.constantReads |= 0b10000;
    const std::vector<HostTensor> results = this->launch(launch);
    const HostTensor &y = results[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const uint64_t t = i / n.features, f = i % n.features;
      const double scale = 1 / std::sqrt(rows.variance[t] + kEps);
      const double product = scale * (n.sums[i] - rows.mean[t] * rows.columnSums[f]);
      const double sum = product + (v.bias ? n.bias[f] : 0);
      // Of both sums, then of the scale, whose variance may be a difference of two squares.
      double error =
          scale * summing(n) * (n.magnitudes[i] + rows.magnitude[t] * rows.columnMagnitudes[f]);
      error += (std::abs(product) + error) * summing(n) *
               (1 + (rows.mean[t] * rows.mean[t] + rows.variance[t]) * scale * scale);
      expectElement(y, i, n, v, sum, error + summing(n) * std::abs(sum));
    }
    expectMomentsOf(y, n.tokens, results[1]);
  }

  static Numbers uneven(DType dtype, int64_t tokens, int64_t features, int64_t depth) {
    return {dtype, tokens, features, depth, unevenRows(dtype, tokens, depth)};
  }
};
CGC_ON_BOTH_EXECUTORS(ProductNorm);

TEST_P(ProductNorm, OddShapes) {
  constexpr int64_t kFeatures[] = {8, 72, 264};
  for (const DType dtype : kHalves) {
    unsigned shape = 0;
    for (const int64_t tokens : {1, 3, 77, 80, 300})
      for (const int64_t depth : {64, 72, 192, 768, 960, 1000, 1280, 2048}) { // 1 to 32 groups.
        const Numbers numbers = uneven(dtype, tokens, kFeatures[shape % 3], depth);
        const Rows rows(numbers);
        unsigned step = 5 * shape++;
        for (const ProductTile &tile : productNormTiles()) {
          if (!tile.takes(depth)) // Bind refuses it.
            continue;
          check(tile, numbers, rows, variantOf(tile, step++));
          if (HasFatalFailure())
            return;
        }
      }
  }
}

TEST_P(ProductNorm, EveryActivationWithAndWithoutBias) {
  for (const DType dtype : kHalves) {
    const Numbers numbers = uneven(dtype, 90, 136, 200);
    const Rows rows(numbers);
    for (const ProductTile &tile : productNormTiles())
      for (int i = 0; i < 2 * kNumActivations && tile.takes(200); ++i) {
        check(tile, numbers, rows,
              {i < kNumActivations, false, false, true, Activation(i % kNumActivations),
               mostStages(tile)});
        if (HasFatalFailure())
          return;
      }
  }
}

} // namespace
} // namespace cgc::test
