// The product kernels that normalise the rows of x themselves, every tile against double precision,
// at odd shapes and with rows whose mean is far from zero; and the moments that all products write.
#include "tests/conformance/product_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

constexpr double kEps = 1e-5;

/// What normalisation makes of the sums of a product.
struct Rows {
  std::vector<double> mean, variance; ///< Of each row of x.

  explicit Rows(const Numbers &n) : mean(n.tokens), variance(n.tokens) {
    const double depth = double(n.depth);
    for (int64_t t = 0; t < n.tokens; ++t) {
      const double *const row = &n.x[t * n.depth];
      for (int64_t k = 0; k < n.depth; ++k)
        mean[t] += row[k] / depth;
      for (int64_t k = 0; k < n.depth; ++k)
        variance[t] += (row[k] - mean[t]) * (row[k] - mean[t]) / depth;
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
  void check(const ProductTile &tile, const Numbers &n, const Rows &rows, Variant v) {
    v.residual = false; // It takes none.
    SCOPED_TRACE(std::string(tile.name) + " " + describe(n, v));
    Launch launch = launchOf("product_norm", tile, n, v);
    launch.reads.pop_back();
    launch.reads.push_back(withElements(emptyMoments(n.tokens, n.depth), momentsOf(n.x, n.tokens)));
    launch.writes.push_back(emptyMoments(n.tokens, n.features));
    launch.floats = {kEps};
    const std::vector<HostTensor> results = this->launch(launch);
    const HostTensor &y = results[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const uint64_t t = i / n.features, f = i % n.features;
      const double scale = 1 / std::sqrt(rows.variance[t] + kEps);
      const double product = scale * n.sums[i], sum = product + (v.bias ? n.bias[f] : 0);
      // Of the sum, then of the scale, whose variance may be a difference of two squares.
      double error = scale * summing(n) * n.magnitudes[i];
      error += (std::abs(product) + error) * summing(n) *
               (1 + (rows.mean[t] * rows.mean[t] + rows.variance[t]) * scale * scale);
      expectElement(y, i, n, v, sum, error + summing(n) * std::abs(sum));
    }
    expectMomentsOf(y, n.tokens, results[1]);
  }

  static Numbers uneven(DType dtype, int64_t tokens, int64_t features, int64_t depth) {
    return {dtype, tokens, features, depth, unevenRows(dtype, tokens, depth)};
  }

  static SamplePlan chainOf(const ProductTile &tile, const ProductTile &normTile, DType dtype,
                            int64_t rows, uint32_t multiprocessors);
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

/// Blocks of persistent kernels have several tiles; wide clusters have pairs beside them.
TEST_P(ProductNorm, SeveralTilesOfABlock) {
  for (const DType dtype : kHalves) {
    const Numbers numbers = uneven(dtype, 900, 520, 256); // Groups in pairs.
    const Rows rows(numbers);
    for (const ProductTile &tile : productNormTiles()) {
      if (!tile.persistent)
        continue;
      for (const unsigned step : {0u, 3u, 7u})
        check(tile, numbers, rows, variantOf(tile, step));
      if (HasFatalFailure())
        return;
    }
  }
}

/// x -> a = x p^T + bias and its moments -> b = normalised a times q^T and its moments -> x =
/// normalised b times q^T, three times around in the same memory: kernels write moments that the
/// next one reads.
SamplePlan ProductNorm::chainOf(const ProductTile &tile, const ProductTile &normTile, DType dtype,
                                int64_t rows, uint32_t multiprocessors) {
  constexpr int64_t kWidth = 128;
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "p", .dtype = dtype, .sizes = {kWidth, kWidth}},
                  {.name = "q", .dtype = dtype, .sizes = {kWidth, kWidth}},
                  {.name = "bias", .dtype = dtype, .sizes = {kWidth}}};
  sample.weights = {encode(dtype, numbers(dtype, kWidth * kWidth, 1, 0.1)),
                    encode(dtype, numbers(dtype, kWidth * kWidth, 2, 0.1)),
                    encode(dtype, numbers(dtype, kWidth, 3))};
  const uint64_t matrix = *alignUp(rows * kWidth * 2, kBufferAlignment),
                 moments = *alignUp(rows * momentGroups(kWidth) * 8, kBufferAlignment);
  const std::vector<int64_t> sizes = {rows, kWidth}, ofMoments = {rows, momentGroups(kWidth), 2};
  Bucket bucket;
  bucket.inputs = {{"x", dtype, sizes, 0}};
  bucket.outputs = {{"y", dtype, sizes, 0}};
  bucket.arenaBytes = 3 * matrix + 2 * moments;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, dtype, sizes),
                    dense(BufferKind::Output, 0, 0, dtype, sizes),
                    dense(BufferKind::Arena, 0, 0, dtype, sizes),
                    dense(BufferKind::Arena, 0, matrix, dtype, sizes),
                    dense(BufferKind::Arena, 0, 2 * matrix, dtype, sizes),
                    dense(BufferKind::Arena, 0, 3 * matrix, DType::F32, ofMoments),
                    dense(BufferKind::Arena, 0, 3 * matrix + moments, DType::F32, ofMoments),
                    dense(BufferKind::Weight, 0, 0, dtype, {kWidth, kWidth}),
                    dense(BufferKind::Weight, 1, 0, dtype, {kWidth, kWidth}),
                    dense(BufferKind::Weight, 2, 0, dtype, {kWidth})};
  const auto normalised = [&](TensorId x, TensorId xMoments, TensorId y, TensorId yMoments) {
    KernelLaunch launch =
        recordOf("product_norm", normTile, dtype, rows, kWidth, kWidth, multiprocessors);
    launch.reads = {x, id(8), kNoTensor, xMoments};
    launch.writes = {y, yMoments};
    launch.floats = {kEps};
    bucket.records.push_back({launch});
  };
  bucket.records.push_back({Memcpy{id(0), id(2)}});
  for (int round = 0; round < 3; ++round) {
    KernelLaunch launch = recordOf("product", tile, dtype, rows, kWidth, kWidth, multiprocessors);
    launch.reads = {id(2), id(7), id(9), kNoTensor};
    launch.writes = {id(3), id(5)};
    bucket.records.push_back({launch});
    normalised(id(3), id(5), id(4), id(6));
    normalised(id(4), id(6), id(2), kNoTensor);
  }
  bucket.records.push_back({Memcpy{id(2), id(1)}});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

TEST_P(ProductNorm, ChainsAreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const ProductTile &normTile : productNormTiles()) {
      const auto tile = std::ranges::find(productTiles(), normTile.name, &ProductTile::name);
      ASSERT_NE(tile, productTiles().end()) << normTile.name;
      // Of 1100 rows, wide clusters have pairs beside them; of 9000, most persistent kernels have
      // all SMs of an H200.
      for (const auto &[rows, multiprocessors] :
           {std::pair(80, 2u), {300, 2u}, {1100, 12u}, {9000, 132u}}) {
        if (!normTile.takes(128) || !tile->takes(128) || (rows > 300 && !normTile.persistent))
          continue;
        SCOPED_TRACE(std::string(normTile.name) + " rows=" + std::to_string(rows));
        expectSameWithProgrammaticEdges(chainOf(*tile, normTile, dtype, rows, multiprocessors));
        if (HasFatalFailure())
          return;
      }
    }
}

} // namespace
} // namespace cgc::test
