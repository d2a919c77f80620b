// What tests of the product kernels share: operands in double precision, launches of them, and what
// a result may differ by.
#pragma once

#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {

inline constexpr DType kHalves[] = {DType::F16, DType::BF16};
/// How far off GELU may be, beyond half a unit of the exact result: bench/gelu.py prints 4.47e-4
/// for f16 and 3.65e-4 for bf16.
inline constexpr double kGeluError = 4.5e-4;
/// As many as a block has memory for.
inline uint32_t mostStages(const ProductTile &tile) {
  return tile.stagesIn(kProductMemory);
}

inline double activate(Activation activation, double x) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Gelu:
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  case Activation::GeluTanh:
    return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  case Activation::QuickGelu:
    return x * sigmoid(1.702 * x);
  case Activation::Silu:
    return x * sigmoid(x);
  case Activation::Relu:
    return std::max(x, 0.0);
  case Activation::Tanh:
    return std::tanh(x);
  }
  return NAN;
}

/// Normal numbers, times `scale`, as the dtype holds them.
inline std::vector<double> numbers(DType dtype, int64_t count, unsigned seed, double scale = 1) {
  std::vector<double> values;
  for (const float v : randomFloats(count, seed))
    values.push_back(v * scale);
  return decodeAll(dtype, encode(dtype, values));
}

/// The operands of a product, with its sums in double precision.
struct Numbers {
  DType dtype;
  int64_t tokens, features, depth;
  std::vector<double> x, w, bias, residual, sums, magnitudes;

  Numbers(DType dtype, int64_t tokens, int64_t features, int64_t depth)
      : Numbers(dtype, tokens, features, depth, numbers(dtype, tokens * depth, 1)) {}
  /// With weights for sums of a few units, where activations bend.
  Numbers(DType dtype, int64_t tokens, int64_t features, int64_t depth, std::vector<double> x)
      : Numbers(dtype, tokens, features, depth, std::move(x),
                numbers(dtype, features * depth, 2, 0.5 / std::sqrt(double(depth)))) {}
  Numbers(DType dtype, int64_t tokens, int64_t features, int64_t depth, std::vector<double> x,
          std::vector<double> w)
      : dtype(dtype), tokens(tokens), features(features), depth(depth), x(std::move(x)),
        w(std::move(w)), bias(numbers(dtype, features, 3)),
        residual(numbers(dtype, tokens * features, 4)), sums(tokens * features),
        magnitudes(tokens * features) {
    std::vector<double> columns(this->w.size());
    for (int64_t f = 0; f < features; ++f)
      for (int64_t k = 0; k < depth; ++k)
        columns[k * features + f] = this->w[f * depth + k];
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < depth; ++k) {
        const double factor = this->x[t * depth + k], *const column = &columns[k * features];
        double *const sum = &sums[t * features], *const magnitude = &magnitudes[t * features];
        for (int64_t f = 0; f < features; ++f) {
          const double term = factor * column[f];
          sum[f] += term;
          magnitude[f] += std::abs(term);
        }
      }
  }
};

/// What launches of the same numbers differ in.
struct Variant {
  bool bias, residual, strided, wIsWeight;
  Activation activation;
  uint32_t stages;
};

/// A step around the values that a launch can take, so that neighbouring launches differ in most.
inline Variant variantOf(const ProductTile &tile, unsigned step) {
  return {.bias = step % 2 == 0,
          .residual = step / 2 % 2 == 0,
          .strided = step % 3 == 0,
          .wIsWeight = step / 3 % 2 == 0,
          .activation = Activation(step % kNumActivations),
          .stages = step / 4 % 2 == 0 ? 2 : mostStages(tile)};
}

inline std::string describe(const Numbers &n, const Variant &v) {
  return "tokens=" + std::to_string(n.tokens) + " features=" + std::to_string(n.features) +
         " depth=" + std::to_string(n.depth) + (v.bias ? " bias" : "") +
         (v.residual ? " residual" : "") + (v.strided ? " strided" : "") +
         (v.wIsWeight ? " weight" : "") + " activation=" + std::to_string(int(v.activation)) +
         " stages=" + std::to_string(v.stages);
}

class ProductKernelTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    skipUnlessGpuRuns(kHopper);
  }

  /// "product_f16_64x80_1" for "product".
  static std::string kernelOf(const std::string &family, const ProductTile &tile, DType dtype) {
    return named(family, dtype) + "_" + std::string(tile.name);
  }

  /// A launch of the family's kernel of a plan that a test writes, without activation: its operands
  /// are to be set.
  static KernelLaunch recordOf(const std::string &family, const ProductTile &tile, DType dtype,
                               int64_t tokens, int64_t features, int64_t depth,
                               uint32_t multiprocessors) {
    KernelLaunch launch = launchOfKernel(kernelOf(family, tile, dtype));
    std::ranges::copy(tile.grid(tokens, features, multiprocessors), launch.grid);
    launch.block[0] = tile.threads();
    launch.sharedBytes = tile.sharedBytes(mostStages(tile));
    launch.ints = {tokens, features, depth, int64_t(Activation::None)};
    return launch;
  }

  /// Runs a plan, from one matrix to one like it, with and without programmatic edges, again and
  /// again: its memory holds what the run before has left, of another matrix.
  void expectSameWithProgrammaticEdges(const SamplePlan &sample) {
    load(sample);
    ASSERT_FALSE(HasFatalFailure());
    std::vector<Context> contexts;
    for (const auto &[executor, programmatic] :
         {std::pair(ExecutorKind::Stream, false), std::pair(GetParam(), true)}) {
      Result<Context> context =
          Context::create(*engine_, {.executor = executor, .programmaticEdges = programmatic});
      ASSERT_TRUE(context.isOk()) << context.status().message();
      contexts.push_back(*std::move(context));
    }
    const Bucket &bucket = sample.plan.entries[0].buckets[0];
    const DType dtype = bucket.inputs[0].dtype;
    const std::vector<int64_t> &sizes = bucket.inputs[0].sizes;
    for (unsigned run = 0; run < 4; ++run) {
      std::vector<std::byte> x = encode(dtype, numbers(dtype, sizes[0] * sizes[1], 10 + run));
      std::vector<std::byte> results[2];
      for (int c = 0; c < 2; ++c) {
        results[c].resize(x.size());
        const TensorView from{x.data(), dtype, DeviceKind::Cpu, sizes, {}},
            to{results[c].data(), dtype, DeviceKind::Cpu, sizes, {}};
        const Status status = contexts[c].run("main", {&from, 1}, {&to, 1});
        ASSERT_TRUE(status.isOk()) << status.message();
      }
      ASSERT_EQ(results[0], results[1]) << "run " << run;
      for (const double value : decodeAll(dtype, results[0]))
        ASSERT_TRUE(std::isfinite(value));
    }
  }

  /// Of the family's kernel, with x, w, bias and residual, and y. A strided variant has tensors
  /// with gaps between rows, each of its own and full of NaN, that do not begin with their memory.
  static Launch launchOf(const std::string &family, const ProductTile &tile, const Numbers &n,
                         const Variant &v) {
    const auto matrix = [&](int64_t rows, int64_t columns, int64_t gap) {
      return v.strided ? emptyTensor(n.dtype, {rows, columns}, {columns + gap, 1}, gap)
                       : emptyTensor(n.dtype, {rows, columns});
    };
    const auto optional = [](bool is, HostTensor tensor, const std::vector<double> &values) {
      return is ? std::optional(withElements(std::move(tensor), values)) : std::nullopt;
    };
    // As if the GPU had four SMs: blocks of pairs have several tiles; or twelve, for a cluster of
    // eight with two pairs beside it.
    const auto grid = tile.grid(n.tokens, n.features, tile.hasWideClusters() ? 12 : 4);
    return {.kernel = kernelOf(family, tile, n.dtype),
            .blocks = grid[0],
            .threads = tile.threads(),
            .reads = {withElements(matrix(n.tokens, n.depth, 8), n.x),
                      withElements(matrix(n.features, n.depth, 16), n.w),
                      optional(v.bias, emptyTensor(n.dtype, {n.features}), n.bias),
                      optional(v.residual, matrix(n.tokens, n.features, 24), n.residual)},
            .writes = {matrix(n.tokens, n.features, 32)},
            .ints = {n.tokens, n.features, n.depth, int64_t(v.activation)},
            .blocksY = grid[1],
            .sharedBytes = tile.sharedBytes(v.stages),
            .constantReads = v.wIsWeight ? 0b110u : 0};
  }

  /// How far a sum of so many products may be from the true one, as a part of its magnitude.
  static double summing(const Numbers &n) { return n.depth * 0x1p-24 + 0x1p-20; }

  /// Whether element `i` of y is what the end of a product makes of `sum`, bias included, which is
  /// known up to `error`.
  static void expectElement(const HostTensor &y, uint64_t i, const Numbers &n, const Variant &v,
                            double sum, double error) {
    double value = sum;
    const auto round = [&] {
      error += rounding(n.dtype) * (std::abs(value) + error) + smallest(n.dtype);
    };
    round();
    if (v.activation != Activation::None) {
      value = activate(v.activation, value);
      // No activation is steeper than GELU, and its own error is the largest.
      error = 1.13 * error + (v.activation == Activation::Gelu ? kGeluError : 1e-6);
      round();
    }
    if (v.residual) {
      value += n.residual[i];
      round();
    }
    ASSERT_NEAR(y.at(i), value, error)
        << "token " << i / n.features << " feature " << i % n.features;
  }
};

} // namespace cgc::test
