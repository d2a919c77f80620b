// gemm_norm with every tile against double precision, at odd shapes and with rows of X whose mean
// is far from zero; and the row statistics that it writes.
#include "tests/conformance/gemm_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

constexpr double kNormEps = 1e-5;

/// The row statistics of X that gemm_norm needs, in double precision.
struct Rows {
  std::vector<double> mean, variance; ///< One for each row of X.

  explicit Rows(const Numbers &p) : mean(p.m), variance(p.m) {
    const double k = double(p.k);
    for (int64_t t = 0; t < p.m; ++t) {
      const double *const row = &p.x[t * p.k];
      for (int64_t j = 0; j < p.k; ++j)
        mean[t] += row[j] / k;
      for (int64_t j = 0; j < p.k; ++j)
        variance[t] += (row[j] - mean[t]) * (row[j] - mean[t]) / k;
    }
  }
};

/// Rows of several means and scales; the last one is constant.
std::vector<double> unevenRows(DType dtype, int64_t m, int64_t k) {
  std::vector<double> x = numbers(dtype, m * k, 1);
  for (int64_t t = 0; t < m; ++t)
    for (int64_t j = 0; j < k; ++j) {
      double &value = x[t * k + j];
      value = t > 0 && t == m - 1 ? 0.75 : value * (1 + double(t % 5)) + double(t % 4) - 1;
    }
  return decodeAll(dtype, encode(dtype, x));
}

class GemmNorm : public GemmKernelTest {
protected:
  void check(const GemmTile &tile, const Numbers &p, const Rows &rows, Variant v) {
    v.residual = false; // gemm_norm has no residual.
    SCOPED_TRACE(std::string(tile.name) + " " + describe(p, v));
    Launch launch = launchOf("gemm_norm", tile, p, v);
    launch.reads.pop_back();
    launch.reads.push_back(withElements(emptyRowStatistics(p.m, p.k), rowStatisticsOf(p.x, p.m)));
    launch.writes.push_back(emptyRowStatistics(p.m, p.n));
    launch.floats = {kNormEps};
    const std::vector<HostTensor> results = this->launch(launch);
    const HostTensor &y = results[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const uint64_t t = i / p.n, f = i % p.n;
      const double scale = 1 / std::sqrt(rows.variance[t] + kNormEps);
      const double scaled = scale * p.sums[i], sum = scaled + (v.bias ? p.bias[f] : 0);
      // The error of the accumulator, then of the scale, whose variance is a difference of two
      // squares.
      double error = scale * summing(p) * p.magnitudes[i];
      error += (std::abs(scaled) + error) * summing(p) *
               (1 + (rows.mean[t] * rows.mean[t] + rows.variance[t]) * scale * scale);
      expectElement(y, i, p, v, sum, error + summing(p) * std::abs(sum));
    }
    expectRowStatisticsOf(y, p.m, results[1]);
  }

  static Numbers uneven(DType dtype, int64_t m, int64_t n, int64_t k) {
    return {dtype, m, n, k, unevenRows(dtype, m, k)};
  }

  static SamplePlan chainOf(const GemmTile &tile, const GemmTile &normTile, DType dtype,
                            int64_t rows, uint32_t multiprocessors);
};
CGC_ON_ALL_EXECUTORS(GemmNorm);

TEST_P(GemmNorm, OddShapes) {
  constexpr int64_t kN[] = {8, 72, 264};
  for (const DType dtype : kHalves) {
    unsigned shape = 0;
    for (const int64_t m : {1, 3, 77, 80, 300})
      for (const int64_t k : {64, 72, 192, 768, 960, 1000, 1280, 2048}) { // 1 to 32 groups.
        const Numbers numbers = uneven(dtype, m, kN[shape % 3], k);
        const Rows rows(numbers);
        unsigned step = 5 * shape++;
        for (const GemmTile &tile : here(gemmNormTiles())) {
          if (!tile.takes(k)) // Bind refuses this K.
            continue;
          check(tile, numbers, rows, variantOf(tile, step++));
          if (HasFatalFailure())
            return;
        }
      }
  }
}

TEST_P(GemmNorm, EveryActivationWithAndWithoutBias) {
  for (const DType dtype : kHalves) {
    const Numbers numbers = uneven(dtype, 90, 136, 200);
    const Rows rows(numbers);
    for (const GemmTile &tile : here(gemmNormTiles()))
      for (int i = 0; i < 2 * kNumActivations && tile.takes(200); ++i) {
        check(tile, numbers, rows,
              {i < kNumActivations, false, false, true, Activation(i % kNumActivations),
               mostStages(tile)});
        if (HasFatalFailure())
          return;
      }
  }
}

/// CTAs of persistent kernels compute several tiles; wide clusters have a tail launch.
TEST_P(GemmNorm, SeveralTilesOfACta) {
  for (const DType dtype : kHalves) {
    const Numbers numbers = uneven(dtype, 900, 520, 256); // An even number of groups.
    const Rows rows(numbers);
    for (const GemmTile &tile : here(gemmNormTiles())) {
      if (!tile.persistent)
        continue;
      for (const unsigned step : {0u, 3u, 7u})
        check(tile, numbers, rows, variantOf(tile, step));
      if (HasFatalFailure())
        return;
    }
  }
}

/// x -> a = x p^T + bias -> b = normalize(a) q^T -> x = normalize(b) q^T, three times in the same
/// memory. The kernels that compute a and b also write their row statistics, which the next kernel
/// reads.
SamplePlan GemmNorm::chainOf(const GemmTile &tile, const GemmTile &normTile, DType dtype,
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
                 statistics = *alignUp(rows * statisticsGroups(kWidth) * 8, kBufferAlignment);
  const std::vector<int64_t> sizes = {rows, kWidth},
                             statisticsSizes = {rows, statisticsGroups(kWidth), 2};
  Bucket bucket;
  bucket.inputs = {{"x", dtype, sizes}};
  bucket.outputs = {{"y", dtype, sizes}};
  bucket.arenaBytes = 3 * matrix + 2 * statistics;
  bucket.tensors = {
      dense(BufferKind::Input, 0, 0, dtype, sizes),
      dense(BufferKind::Output, 0, 0, dtype, sizes),
      dense(BufferKind::Arena, 0, 0, dtype, sizes),
      dense(BufferKind::Arena, 0, matrix, dtype, sizes),
      dense(BufferKind::Arena, 0, 2 * matrix, dtype, sizes),
      dense(BufferKind::Arena, 0, 3 * matrix, DType::F32, statisticsSizes),
      dense(BufferKind::Arena, 0, 3 * matrix + statistics, DType::F32, statisticsSizes),
      dense(BufferKind::Weight, 0, 0, dtype, {kWidth, kWidth}),
      dense(BufferKind::Weight, 1, 0, dtype, {kWidth, kWidth}),
      dense(BufferKind::Weight, 2, 0, dtype, {kWidth})};
  const auto normalized = [&](TensorId x, TensorId xStatistics, TensorId y, TensorId yStatistics) {
    KernelLaunch launch =
        recordOf("gemm_norm", normTile, dtype, rows, kWidth, kWidth, multiprocessors);
    launch.reads = {x, id(8), kNoTensor, xStatistics};
    launch.writes = {y, yStatistics};
    launch.floats = {kNormEps};
    bucket.records.push_back({launch});
  };
  bucket.records.push_back({Memcpy{id(0), id(2)}});
  for (int round = 0; round < 3; ++round) {
    KernelLaunch launch = recordOf("gemm", tile, dtype, rows, kWidth, kWidth, multiprocessors);
    launch.reads = {id(2), id(7), id(9), kNoTensor};
    launch.writes = {id(3), id(5)};
    bucket.records.push_back({launch});
    normalized(id(3), id(5), id(4), id(6));
    normalized(id(4), id(6), id(2), kNoTensor);
  }
  bucket.records.push_back({Memcpy{id(2), id(1)}});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

/// Only the launches of a GPU have edges.
class GemmNormChains : public GemmNorm {};
CGC_ON_GPU_EXECUTORS(GemmNormChains);

TEST_P(GemmNormChains, AreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const GemmTile &normTile : here(gemmNormTiles())) {
      const auto tile = std::ranges::find(gemmTiles(), normTile.name, &GemmTile::name);
      ASSERT_NE(tile, gemmTiles().end()) << normTile.name;
      // With 1100 rows, wide clusters have a tail launch; with 9000, most persistent kernels use
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
