// The product kernels that normalise the rows of x themselves, every tile against double precision,
// at odd shapes and with rows whose mean is far from zero; and the moments that all products write.
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

/// Of each row, for each kMomentGroup columns: their sum, and the sum of their squares.
std::vector<double> momentsOf(const std::vector<double> &x, int64_t rows) {
  const int64_t columns = std::ssize(x) / rows, groups = momentGroups(columns);
  std::vector<double> moments(rows * groups * 2);
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    double *const of = &moments[(i / columns * groups + i % columns / kMomentGroup) * 2];
    of[0] += x[i];
    of[1] += x[i] * x[i];
  }
  return moments;
}

struct Variant {
  bool bias, residual, strided, isWeight;
  Activation activation;
  uint32_t stages;
};

class ProductNorm : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    skipUnlessGpuRuns(kHopper);
  }

  void check(const ProductTile &tile, const Numbers &n, const Rows &rows, const Variant &v) {
    SCOPED_TRACE(std::string(tile.name) + " tokens=" + std::to_string(n.tokens) +
                 " features=" + std::to_string(n.features) + " depth=" + std::to_string(n.depth) +
                 (v.bias ? " bias" : "") + (v.residual ? " residual" : "") +
                 (v.strided ? " strided" : "") + (v.isWeight ? " weight" : "") + " activation=" +
                 std::to_string(int(v.activation)) + " stages=" + std::to_string(v.stages));
    // Gaps hold NaN, which must not get into sums or statistics.
    const auto matrix = [&](int64_t height, int64_t columns, int64_t gap) {
      return v.strided ? emptyTensor(n.dtype, {height, columns}, {columns + gap, 1}, gap)
                       : emptyTensor(n.dtype, {height, columns});
    };
    const auto optional = [](bool is, const HostTensor &tensor) {
      return is ? std::optional(tensor) : std::nullopt;
    };
    const HostTensor x = withElements(matrix(n.tokens, n.depth, 8), n.x),
                     w = withElements(matrix(n.features, n.depth, 16), n.w),
                     bias = withElements(emptyTensor(n.dtype, {n.features}), n.bias),
                     residual = withElements(matrix(n.tokens, n.features, 24), n.residual),
                     sums = withElements(emptyTensor(DType::F32, {n.features}), rows.columnSums),
                     moments =
                         withElements(emptyTensor(DType::F32, {n.tokens, momentGroups(n.depth), 2}),
                                      momentsOf(n.x, n.tokens)),
                     yMoments = emptyTensor(DType::F32, {n.tokens, momentGroups(n.features), 2});
    const std::vector<HostTensor> results = launch(
        {.kernel = named("product_norm", n.dtype) + "_" + std::string(tile.name),
         .blocks = tile.blocksX(n.features),
         .threads = tile.normThreads(),
         .reads = {x, w, optional(v.bias, bias), optional(v.residual, residual), sums, moments},
         .writes = {matrix(n.tokens, n.features, 32), yMoments},
         .ints = {n.tokens, n.features, n.depth, int64_t(v.activation)},
         .floats = {kEps},
         .blocksY = tile.blocksY(n.tokens),
         .sharedBytes = tile.sharedBytes(v.stages),
         .constantReads = v.isWeight ? 0b10110u : 0});
    const HostTensor &y = results[0];
    const double unit = rounding(n.dtype), summing = n.depth * 0x1p-24 + 0x1p-20;
    for (uint64_t i = 0; i < y.elements(); ++i) {
      const uint64_t t = i / n.features, f = i % n.features;
      const double scale = 1 / std::sqrt(rows.variance[t] + kEps);
      const double product = scale * (n.sums[i] - rows.mean[t] * rows.columnSums[f]);
      double value = product + (v.bias ? n.bias[f] : 0);
      // Of both sums, then of the scale, whose variance may be a difference of two squares.
      double error =
          scale * summing * (n.magnitudes[i] + rows.magnitude[t] * rows.columnMagnitudes[f]);
      error += (std::abs(product) + error) * summing *
               (1 + (rows.mean[t] * rows.mean[t] + rows.variance[t]) * scale * scale);
      error += summing * std::abs(value);
      const auto round = [&] { error += unit * (std::abs(value) + error) + smallest(n.dtype); };
      round();
      if (v.activation != Activation::None) {
        value = activate(v.activation, value);
        error = 1.13 * error + 1e-6; // No activation is steeper.
        round();
      }
      if (v.residual) {
        value += n.residual[i];
        round();
      }
      ASSERT_NEAR(y.at(i), value, error) << "token " << t << " feature " << f;
    }
    // The moments are those of what was stored.
    std::vector<double> stored;
    for (uint64_t i = 0; i < y.elements(); ++i)
      stored.push_back(y.at(i));
    const std::vector<double> want = momentsOf(stored, n.tokens);
    for (uint64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(results[1].at(i), want[i], 1e-5 * (1 + want[i / 2 * 2 + 1])) << "moment " << i;
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
    for (const int64_t tokens : {1, 3, 77, 80, 257})
      for (const int64_t depth : {64, 72, 768, 1000}) {
        const Numbers numbers = uneven(dtype, tokens, kFeatures[shape % 3], depth);
        const Rows rows(numbers);
        unsigned step = 5 * shape++;
        for (const ProductTile &tile : productNormTiles()) {
          if (!tile.takes(depth)) // Bind refuses it.
            continue;
          check(tile, numbers, rows,
                {.bias = step % 2 == 0,
                 .residual = step / 2 % 2 == 0,
                 .strided = step % 3 == 0,
                 .isWeight = step / 3 % 2 == 0,
                 .activation = Activation(step % kNumActivations),
                 .stages = step / 4 % 2 == 0 ? 2 : mostStages(tile)});
          if (HasFatalFailure())
            return;
          ++step;
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
