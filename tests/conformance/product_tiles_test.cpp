// The product kernels of every tile against double precision, at odd shapes and with everything
// that a launch can vary; and chains of them, with and without programmatic edges.
#include "tests/conformance/product_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

class ProductTiles : public ProductKernelTest {
protected:
  void check(const ProductTile &tile, const Numbers &n, const Variant &v) {
    SCOPED_TRACE(describe(n, v));
    const HostTensor y = launch(launchOf("product", tile, n, v))[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const double sum = n.sums[i] + (v.bias ? n.bias[i % n.features] : 0);
      expectElement(y, i, n, v, sum, summing(n) * (n.magnitudes[i] + std::abs(sum)));
    }
  }

  /// Every element of the residual is read before it is overwritten, and by nobody later: in its
  /// memory the result is, bit for bit, that of memory of its own.
  void checkInPlace(const ProductTile &tile, const Numbers &n, const Variant &v) {
    Launch launch = launchOf("product", tile, n, v);
    const HostTensor apart = this->launch(launch)[0];
    launch.overwritten = 3;
    ASSERT_EQ(this->launch(launch)[0].bytes, apart.bytes) << launch.kernel;
  }

  static SamplePlan chainOf(const ProductTile &tile, DType dtype, int64_t rows,
                            uint32_t multiprocessors);
};
CGC_ON_BOTH_EXECUTORS(ProductTiles);

TEST_P(ProductTiles, OddShapes) {
  constexpr int64_t kShapes[][3] = {{1, 8, 8},      {1, 768, 592},  {3, 72, 24},
                                    {3, 264, 1024}, {77, 72, 592},  {77, 264, 72},
                                    {80, 8, 1024},  {80, 768, 24},  {257, 264, 8},
                                    {257, 72, 592}, {300, 768, 72}, {300, 264, 1024}};
  for (const DType dtype : kHalves) {
    unsigned shape = 0;
    for (const auto &[tokens, features, depth] : kShapes) {
      const Numbers numbers(dtype, tokens, features, depth);
      unsigned step = 5 * shape++;
      for (const ProductTile &tile : productTiles()) {
        if (!tile.takes(depth)) // Bind refuses it.
          continue;
        check(tile, numbers, variantOf(tile, step++));
        if (HasFatalFailure())
          return;
      }
    }
  }
}

TEST_P(ProductTiles, EveryActivationWithAndWithoutBiasAndResidual) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 90, 136, 200);
    for (const ProductTile &tile : productTiles())
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

/// With a last group that has 8 features, and more tokens than a block of any tile.
TEST_P(ProductTiles, MomentsOfWhatIsStored) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 300, 264, 200);
    for (const ProductTile &tile : productTiles())
      for (const Activation activation : {Activation::None, Activation::Gelu}) {
        if (!tile.takes(200))
          continue;
        SCOPED_TRACE(kernelOf("product", tile, dtype));
        Launch launch = launchOf("product", tile, numbers,
                                 {.bias = true,
                                  .residual = true,
                                  .strided = false,
                                  .wIsWeight = true,
                                  .activation = activation,
                                  .stages = mostStages(tile)});
        launch.writes.push_back(emptyMoments(300, 264));
        const std::vector<HostTensor> results = this->launch(launch);
        expectMomentsOf(results[0], 300, results[1]);
        if (HasFatalFailure())
          return;
      }
  }
}

TEST_P(ProductTiles, TheResultMayLieInTheResidual) {
  for (const DType dtype : kHalves) {
    const Numbers numbers(dtype, 300, 264, 200);
    for (const ProductTile &tile : productTiles()) {
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

/// Persistent kernels fetch residuals between operands, where tiles have more steps than there are
/// stages and boxes, and blocks several tiles.
TEST_P(ProductTiles, ResidualsOfManySteps) {
  for (const DType dtype : kHalves)
    for (const auto &[features, depth] : {std::pair(520, 1024), {776, 192}}) { // Rows both ways.
      const Numbers numbers(dtype, 600, features, depth);
      for (const ProductTile &tile : productTiles())
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

/// x -> a = tanh(x p^T + bias) -> b = a q^T + a -> x = a c^T, four times around in the same memory,
/// where c is the first rows of b, as many as x has columns: the last of the three has as its w
/// what the product before it wrote.
SamplePlan ProductTiles::chainOf(const ProductTile &tile, DType dtype, int64_t rows,
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
  bucket.inputs = {{"x", dtype, {rows, kNarrow}, 0}};
  bucket.outputs = {{"y", dtype, {rows, kNarrow}, 0}};
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
  const auto product = [&](TensorId x, TensorId w, TensorId bias, TensorId residual, TensorId y,
                           int64_t features, int64_t depth, Activation activation) {
    KernelLaunch launch = recordOf("product", tile, dtype, rows, features, depth, multiprocessors);
    launch.reads = {x, w, bias, residual};
    launch.writes = {y, kNoTensor};
    launch.ints[3] = int64_t(activation);
    bucket.records.push_back({launch});
  };
  const TensorId x = id(2), a = id(3), b = id(4), c = id(8);
  bucket.records.push_back({Memcpy{id(0), x}});
  for (int round = 0; round < 4; ++round) {
    product(x, id(5), id(7), kNoTensor, a, kWide, kNarrow, Activation::Tanh);
    product(a, id(6), kNoTensor, a, b, kWide, kWide, Activation::None);
    product(a, c, kNoTensor, kNoTensor, x, kNarrow, kWide, Activation::None);
  }
  bucket.records.push_back({Memcpy{x, id(1)}});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

TEST_P(ProductTiles, ChainsAreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const ProductTile &tile : productTiles())
      // Of 300 rows, the two blocks of persistent kernels have several tiles; of 1100, wide
      // clusters have pairs beside them; of 9000, most of these kernels have all SMs of an H200, so
      // that each block begins where one of the kernel before has ended.
      for (const auto &[rows, multiprocessors] :
           {std::pair(80, 2u), {300, 2u}, {1100, 12u}, {9000, 132u}}) {
        if (!tile.takes(80) || (rows > 300 && !tile.persistent))
          continue;
        SCOPED_TRACE(kernelOf("product", tile, dtype) + " rows=" + std::to_string(rows));
        expectSameWithProgrammaticEdges(chainOf(tile, dtype, rows, multiprocessors));
        if (HasFatalFailure())
          return;
      }
}

} // namespace
} // namespace cgc::test
