// gemm with every tile against double precision, at odd shapes and with all options of a launch;
// and chains of GEMMs, with and without programmatic edges.
#include "tests/conformance/gemm_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

class GemmTiles : public GemmKernelTest {
protected:
  void check(const GemmTile &tile, const Numbers &p, const Variant &v) {
    SCOPED_TRACE(describe(p, v));
    const HostTensor y = launch(launchOf("gemm", tile, p, v))[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const double sum = p.sums[i] + (v.bias ? p.bias[i % p.n] : 0);
      expectElement(y, i, p, v, sum, summing(p) * (p.magnitudes[i] + std::abs(sum)));
    }
  }

  /// The kernel reads every element of the residual before it overwrites it: y in the memory of the
  /// residual is bit-equal to y in memory of its own.
  void checkInPlace(const GemmTile &tile, const Numbers &p, const Variant &v) {
    Launch launch = launchOf("gemm", tile, p, v);
    const HostTensor apart = this->launch(launch)[0];
    launch.overwritten = 3;
    ASSERT_EQ(this->launch(launch)[0].bytes, apart.bytes) << launch.kernel;
  }

  static SamplePlan chainOf(const GemmTile &tile, DType dtype, int64_t rows,
                            uint32_t multiprocessors);
};
CGC_ON_ALL_EXECUTORS(GemmTiles);

TEST_P(GemmTiles, OddShapes) {
  constexpr int64_t kShapes[][3] = {{1, 8, 8},      {1, 768, 592},  {3, 72, 24},
                                    {3, 264, 1024}, {77, 72, 592},  {77, 264, 72},
                                    {80, 8, 1024},  {80, 768, 24},  {257, 264, 8},
                                    {257, 72, 592}, {300, 768, 72}, {300, 264, 1024}};
  for (const DType dtype : kHalves) {
    unsigned shape = 0;
    for (const auto &[m, n, k] : kShapes) {
      const Numbers numbers(dtype, m, n, k);
      unsigned step = 5 * shape++;
      for (const GemmTile &tile : here(gemmTiles())) {
        if (!tile.takes(k)) // Bind refuses this K.
          continue;
        check(tile, numbers, variantOf(tile, step++));
        if (HasFatalFailure())
          return;
      }
    }
  }
}

TEST_P(GemmTiles, EveryActivationWithAndWithoutBiasAndResidual) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 90, 136, 200);
    for (const GemmTile &tile : here(gemmTiles()))
      for (int i = 0; i < kNumActivations; ++i) {
        if (!tile.takes(200))
          continue;
        const bool odd = i % 2 == 1;
        check(tile, numbers, {odd, !odd, false, true, Activation(i), mostStages(tile)});
        if (HasFatalFailure())
          return;
      }
  }
}

/// With and without an activation before the gate, rows of which some tiles have a part, and y in
/// the memory of the gate.
TEST_P(GemmTiles, GatesOfResults) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 300, 264, 200);
    unsigned step = 0;
    for (const GemmTile &tile : here(gemmTiles())) {
      if (!tile.takes(200))
        continue;
      Variant variant = variantOf(tile, step++);
      variant.residual = variant.gates = true;
      check(tile, numbers, variant);
      variant.strided = false;
      if (!HasFatalFailure())
        checkInPlace(tile, numbers, variant);
      if (HasFatalFailure())
        return;
    }
  }
}

/// The last group has 8 columns, and M exceeds every tile.
TEST_P(GemmTiles, RowStatisticsOfWhatIsStored) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 300, 264, 200);
    for (const GemmTile &tile : here(gemmTiles()))
      for (const Activation activation : {Activation::None, Activation::Gelu}) {
        if (!tile.takes(200))
          continue;
        SCOPED_TRACE(kernelOf("gemm", tile, dtype));
        Launch launch = launchOf("gemm", tile, numbers,
                                 {.bias = true,
                                  .residual = true,
                                  .strided = false,
                                  .wIsWeight = true,
                                  .activation = activation,
                                  .stages = mostStages(tile)});
        launch.writes.push_back(emptyRowStatistics(300, 264));
        const std::vector<HostTensor> results = this->launch(launch);
        expectRowStatisticsOf(results[0], 300, results[1]);
        if (HasFatalFailure())
          return;
      }
  }
}

TEST_P(GemmTiles, TheResultMayLieInTheResidual) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 300, 264, 200);
    for (const GemmTile &tile : here(gemmTiles())) {
      if (!tile.takes(200))
        continue;
      checkInPlace(tile, numbers,
                   {.bias = true,
                    .residual = true,
                    .strided = false,
                    .wIsWeight = true,
                    .activation = Activation::Gelu,
                    .stages = mostStages(tile)});
      if (HasFatalFailure())
        return;
    }
  }
}

/// Persistent kernels load residuals between operands: tiles with more K steps than stages and
/// boxes, and CTAs with several tiles.
TEST_P(GemmTiles, ResidualsOfManySteps) {
  for (const DType dtype : kHalves)
    for (const auto &[n, k] : {std::pair(520, 1024), {776, 192}}) { // Inner dimension N, then M.
      const Numbers numbers(dtype, 600, n, k);
      for (const GemmTile &tile : here(gemmTiles()))
        for (const uint32_t stages : {2u, mostStages(tile)}) {
          if (!tile.persistent)
            continue;
          const Variant variant{.bias = true,
                                .residual = true,
                                .strided = false,
                                .wIsWeight = true,
                                .activation = Activation::None,
                                .stages = stages};
          check(tile, numbers, variant);
          if (!HasFatalFailure())
            checkInPlace(tile, numbers, variant);
          if (HasFatalFailure())
            return;
        }
    }
}

/// x -> a = tanh(x p^T + bias) -> b = a q^T + a -> x = a c^T, four times in the same memory. c is
/// the first rows of b, as many as x has columns, so that the W of the last GEMM is the result of
/// the previous one.
SamplePlan GemmTiles::chainOf(const GemmTile &tile, DType dtype, int64_t rows,
                              uint32_t multiprocessors) {
  constexpr int64_t kNarrow = 80, kWide = 264;
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "p", .dtype = dtype, .sizes = {kWide, kNarrow}},
                  {.name = "q", .dtype = dtype, .sizes = {kWide, kWide}},
                  {.name = "bias", .dtype = dtype, .sizes = {kWide}}};
  sample.weights = {encode(dtype, numbers(dtype, kWide * kNarrow, 1, 2e-3)),
                    encode(dtype, numbers(dtype, kWide * kWide, 2, 0.03)),
                    encode(dtype, numbers(dtype, kWide, 3, 0.1))};
  Bucket bucket;
  const uint64_t narrow = *alignUp(rows * kNarrow * 2, kBufferAlignment),
                 wide = *alignUp(rows * kWide * 2, kBufferAlignment);
  bucket.inputs = {{"x", dtype, {rows, kNarrow}}};
  bucket.outputs = {{"y", dtype, {rows, kNarrow}}};
  bucket.arenaBytes = narrow + 2 * wide;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, dtype, {rows, kNarrow}),
                    dense(BufferKind::Output, 0, 0, dtype, {rows, kNarrow}),
                    dense(BufferKind::Arena, 0, 0, dtype, {rows, kNarrow}),
                    dense(BufferKind::Arena, 0, narrow, dtype, {rows, kWide}),
                    dense(BufferKind::Arena, 0, narrow + wide, dtype, {rows, kWide}),
                    dense(BufferKind::Weight, 0, 0, dtype, {kWide, kNarrow}),
                    dense(BufferKind::Weight, 1, 0, dtype, {kWide, kWide}),
                    dense(BufferKind::Weight, 2, 0, dtype, {kWide}),
                    dense(BufferKind::Arena, 0, narrow + wide, dtype, {kNarrow, kWide})};
  const auto gemm = [&](TensorId x, TensorId w, TensorId bias, TensorId residual, TensorId y,
                        int64_t n, int64_t k, Activation activation) {
    KernelLaunch launch = recordOf("gemm", tile, dtype, rows, n, k, multiprocessors);
    launch.reads = {x, w, bias, residual};
    launch.writes = {y, kNoTensor};
    launch.ints[3] = int64_t(activation);
    bucket.records.push_back({launch});
  };
  const TensorId x = id(2), a = id(3), b = id(4), c = id(8);
  bucket.records.push_back({Memcpy{id(0), x}});
  for (int round = 0; round < 4; ++round) {
    gemm(x, id(5), id(7), kNoTensor, a, kWide, kNarrow, Activation::Tanh);
    gemm(a, id(6), kNoTensor, a, b, kWide, kWide, Activation::None);
    gemm(a, c, kNoTensor, kNoTensor, x, kNarrow, kWide, Activation::None);
  }
  bucket.records.push_back({Memcpy{x, id(1)}});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

/// Only the launches of a GPU have edges.
class GemmTilesChains : public GemmTiles {};
CGC_ON_GPU_EXECUTORS(GemmTilesChains);

TEST_P(GemmTilesChains, AreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const GemmTile &tile : here(gemmTiles()))
      // With 300 rows, the two CTAs of persistent kernels compute several tiles. With 1100, wide
      // clusters have a tail launch. With 9000, most persistent kernels use all SMs of an H200, so
      // that each CTA starts where one of the previous kernel has exited.
      for (const auto &[rows, multiprocessors] :
           {std::pair(80, 2u), {300, 2u}, {1100, 12u}, {9000, 132u}}) {
        if (!tile.takes(80) || (rows > 300 && !tile.persistent))
          continue;
        SCOPED_TRACE(kernelOf("gemm", tile, dtype) + " rows=" + std::to_string(rows));
        expectSameWithProgrammaticEdges(chainOf(tile, dtype, rows, multiprocessors));
        if (HasFatalFailure())
          return;
      }
}

} // namespace
} // namespace cgc::test
