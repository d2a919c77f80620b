// The product kernels of every tile against double precision, at odd shapes and with everything
// that a launch can vary; and chains of them, with and without programmatic edges.
#include "tests/conformance/product_numbers.h"

namespace cgc::test {
namespace {

std::string kernelOf(const ProductTile &tile, DType dtype) {
  return named("product", dtype) + "_" + std::string(tile.name);
}

/// What launches of the same numbers differ in.
struct Variant {
  bool bias, residual, strided, wIsWeight;
  Activation activation;
  uint32_t stages;
};

std::string describe(const Numbers &n, const Variant &v) {
  return "tokens=" + std::to_string(n.tokens) + " features=" + std::to_string(n.features) +
         " depth=" + std::to_string(n.depth) + (v.bias ? " bias" : "") +
         (v.residual ? " residual" : "") + (v.strided ? " strided" : "") +
         (v.wIsWeight ? " weight" : "") + " activation=" + std::to_string(int(v.activation)) +
         " stages=" + std::to_string(v.stages);
}

class ProductTiles : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    skipUnlessGpuRuns(kHopper);
  }

  void check(const ProductTile &tile, const Numbers &n, const Variant &v) {
    SCOPED_TRACE(describe(n, v));
    // Every tensor that may has gaps of its own between rows, and does not begin with its memory.
    const auto matrix = [&](int64_t rows, int64_t columns, int64_t gap) {
      return v.strided ? emptyTensor(n.dtype, {rows, columns}, {columns + gap, 1}, gap)
                       : emptyTensor(n.dtype, {rows, columns});
    };
    const auto optional = [](bool is, const HostTensor &tensor) {
      return is ? std::optional(tensor) : std::nullopt;
    };
    const HostTensor x = withElements(matrix(n.tokens, n.depth, 8), n.x),
                     w = withElements(matrix(n.features, n.depth, 16), n.w),
                     bias = withElements(emptyTensor(n.dtype, {n.features}), n.bias),
                     residual = withElements(matrix(n.tokens, n.features, 24), n.residual);
    const HostTensor y =
        launch({.kernel = kernelOf(tile, n.dtype),
                .blocks = tile.blocksX(n.features),
                .threads = tile.threads(),
                .reads = {x, w, optional(v.bias, bias), optional(v.residual, residual)},
                .writes = {matrix(n.tokens, n.features, 32)},
                .ints = {n.tokens, n.features, n.depth, int64_t(v.activation)},
                .blocksY = tile.blocksY(n.tokens),
                .sharedBytes = tile.sharedBytes(v.stages),
                .constantReads = v.wIsWeight ? 0b110u : 0})[0];
    const double unit = rounding(n.dtype), summing = n.depth * 0x1p-24 + 0x1p-20;
    for (uint64_t i = 0; i < y.elements(); ++i) {
      double value = n.sums[i] + (v.bias ? n.bias[i % n.features] : 0);
      double error = summing * (n.magnitudes[i] + std::abs(value));
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
      ASSERT_NEAR(y.at(i), value, error)
          << "token " << i / n.features << " feature " << i % n.features;
    }
  }
};
CGC_ON_BOTH_EXECUTORS(ProductTiles);

/// A step around the values that a launch can take, so that neighbouring launches differ in most.
Variant variant(const ProductTile &tile, unsigned step) {
  return {.bias = step % 2 == 0,
          .residual = step / 2 % 2 == 0,
          .strided = step % 3 == 0,
          .wIsWeight = step / 3 % 2 == 0,
          .activation = Activation(step % kNumActivations),
          .stages = step / 4 % 2 == 0 ? 2 : mostStages(tile)};
}

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
        if (!tile.takes(80))
          continue;
        if (!tile.takes(depth)) // Bind refuses it.
          continue;
        check(tile, numbers, variant(tile, step++));
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

/// x -> a = tanh(x p^T + bias) -> b = a q^T + a -> x = a b^T, four times around in the same memory:
/// the last of the three has as its w what the product before it wrote.
SamplePlan chainOf(const ProductTile &tile, DType dtype) {
  constexpr int64_t kRows = 80, kWide = 264;
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "p", .dtype = dtype, .sizes = {kWide, kRows}},
                  {.name = "q", .dtype = dtype, .sizes = {kWide, kWide}},
                  {.name = "bias", .dtype = dtype, .sizes = {kWide}}};
  sample.weights = {encode(dtype, numbers(dtype, kWide * kRows, 1, 2e-3)),
                    encode(dtype, numbers(dtype, kWide * kWide, 2, 0.03)),
                    encode(dtype, numbers(dtype, kWide, 3, 0.1))};
  Bucket bucket;
  const uint64_t square = alignUp(kRows * kRows * 2, kBufferAlignment),
                 wide = alignUp(kRows * kWide * 2, kBufferAlignment);
  bucket.inputs = {{"x", dtype, {kRows, kRows}, 0}};
  bucket.outputs = {{"y", dtype, {kRows, kRows}, 0}};
  bucket.arenaBytes = square + 2 * wide;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, dtype, {kRows, kRows}),
                    dense(BufferKind::Output, 0, 0, dtype, {kRows, kRows}),
                    dense(BufferKind::Arena, 0, 0, dtype, {kRows, kRows}),
                    dense(BufferKind::Arena, 0, square, dtype, {kRows, kWide}),
                    dense(BufferKind::Arena, 0, square + wide, dtype, {kRows, kWide}),
                    dense(BufferKind::Weight, 0, 0, dtype, {kWide, kRows}),
                    dense(BufferKind::Weight, 1, 0, dtype, {kWide, kWide}),
                    dense(BufferKind::Weight, 2, 0, dtype, {kWide})};
  const auto product = [&](TensorId x, TensorId w, TensorId bias, TensorId residual, TensorId y,
                           int64_t features, int64_t depth, Activation activation) {
    const Kernel *kernel = findKernel(kernelOf(tile, dtype));
    KernelLaunch launch;
    launch.kernel = kernel->name;
    launch.abiHash = kernel->abiHash;
    launch.grid[0] = tile.blocksX(features);
    launch.grid[1] = tile.blocksY(kRows);
    launch.block[0] = tile.threads();
    launch.sharedBytes = tile.sharedBytes(mostStages(tile));
    launch.reads = {x, w, bias, residual};
    launch.writes = {y, kNoTensor};
    launch.ints = {kRows, features, depth, int64_t(activation)};
    bucket.records.push_back({launch});
  };
  const TensorId x = id(2), a = id(3), b = id(4);
  bucket.records.push_back({Memcpy{id(0), x}});
  for (int round = 0; round < 4; ++round) {
    product(x, id(5), id(7), kNoTensor, a, kWide, kRows, Activation::Tanh);
    product(a, id(6), kNoTensor, a, b, kWide, kWide, Activation::None);
    product(a, b, kNoTensor, kNoTensor, x, kRows, kWide, Activation::None);
  }
  bucket.records.push_back({Memcpy{x, id(1)}});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

TEST_P(ProductTiles, ChainsAreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const ProductTile &tile : productTiles()) {
      if (!tile.takes(80))
        continue;
      SCOPED_TRACE(kernelOf(tile, dtype));
      load(chainOf(tile, dtype));
      ASSERT_FALSE(HasFatalFailure());
      std::vector<Context> contexts;
      for (const auto &[executor, programmatic] :
           {std::pair(ExecutorKind::Stream, false), std::pair(GetParam(), true)}) {
        Result<Context> context =
            Context::create(*engine_, {.executor = executor, .programmaticEdges = programmatic});
        ASSERT_TRUE(context.isOk()) << context.status().message();
        contexts.push_back(*std::move(context));
      }
      const std::vector<int64_t> sizes = {80, 80};
      // The memory holds what the run before has left, of another x.
      for (unsigned run = 0; run < 4; ++run) {
        std::vector<std::byte> x = encode(dtype, numbers(dtype, 80 * 80, 10 + run)), results[2];
        for (int c = 0; c < 2; ++c) {
          results[c].resize(x.size());
          const TensorView in{x.data(), dtype, DeviceKind::Cpu, sizes, {}},
              out{results[c].data(), dtype, DeviceKind::Cpu, sizes, {}};
          const Status status = contexts[c].run("main", {&in, 1}, {&out, 1});
          ASSERT_TRUE(status.isOk()) << status.message();
        }
        ASSERT_EQ(results[0], results[1]) << "run " << run;
        for (const double value : decodeAll(dtype, results[0]))
          ASSERT_TRUE(std::isfinite(value));
      }
    }
}

} // namespace
} // namespace cgc::test
