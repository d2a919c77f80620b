// Helpers of the tests of GEMM kernels: operands in double precision, launches, and error bounds.
#pragma once

#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {

inline constexpr DType kHalves[] = {DType::F16, DType::BF16};
/// The error bound of GELU beyond half a unit in the last place: bench/gelu.py prints 4.47e-4 for
/// f16 and 3.65e-4 for bf16.
inline constexpr double kGeluError = 4.5e-4;
/// The most stages for which a CTA has memory.
inline uint32_t mostStages(const GemmTile &tile) {
  return tile.stagesIn(kGemmMaxSharedBytes);
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

/// `count` normally distributed numbers times `scale`, rounded to the dtype.
inline std::vector<double> numbers(DType dtype, int64_t count, unsigned seed, double scale = 1) {
  std::vector<double> values;
  for (const float v : randomFloats(count, seed))
    values.push_back(v * scale);
  return decodeAll(dtype, encode(dtype, values));
}

/// The operands of a GEMM, and x w^T (`sums`) in double precision.
struct Numbers {
  DType dtype;
  int64_t m, n, k;
  std::vector<double> x, w, bias, residual, sums, magnitudes;

  Numbers(DType dtype, int64_t m, int64_t n, int64_t k)
      : Numbers(dtype, m, n, k, numbers(dtype, m * k, 1)) {}
  /// With weights for sums of a few units, where activations are not linear.
  Numbers(DType dtype, int64_t m, int64_t n, int64_t k, std::vector<double> x)
      : Numbers(dtype, m, n, k, std::move(x),
                numbers(dtype, n * k, 2, 0.5 / std::sqrt(double(k)))) {}
  Numbers(DType dtype, int64_t m, int64_t n, int64_t k, std::vector<double> x,
          std::vector<double> w)
      : dtype(dtype), m(m), n(n), k(k), x(std::move(x)), w(std::move(w)),
        bias(numbers(dtype, n, 3)), residual(numbers(dtype, m * n, 4)), sums(m * n),
        magnitudes(m * n) {
    std::vector<double> columns(this->w.size());
    for (int64_t f = 0; f < n; ++f)
      for (int64_t j = 0; j < k; ++j)
        columns[j * n + f] = this->w[f * k + j];
    for (int64_t t = 0; t < m; ++t)
      for (int64_t j = 0; j < k; ++j) {
        const double factor = this->x[t * k + j], *const column = &columns[j * n];
        double *const sum = &sums[t * n], *const magnitude = &magnitudes[t * n];
        for (int64_t f = 0; f < n; ++f) {
          const double term = factor * column[f];
          sum[f] += term;
          magnitude[f] += std::abs(term);
        }
      }
  }
};

/// The options of a launch with given operands.
struct Variant {
  bool bias, residual, strided, wIsWeight;
  Activation activation;
  uint32_t stages;
  bool gates = false; ///< The residual is a factor. Only of gemm.
};

/// Enumerates options so that consecutive steps differ in most of them.
inline Variant variantOf(const GemmTile &tile, unsigned step) {
  return {.bias = step % 2 == 0,
          .residual = step / 2 % 2 == 0,
          .strided = step % 3 == 0,
          .wIsWeight = step / 3 % 2 == 0,
          .activation = Activation(step % kNumActivations),
          .stages = step / 4 % 2 == 0 ? 2 : mostStages(tile)};
}

inline std::string describe(const Numbers &p, const Variant &v) {
  return "M=" + std::to_string(p.m) + " N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
         (v.bias ? " bias" : "") + (v.residual ? v.gates ? " gate" : " residual" : "") +
         (v.strided ? " strided" : "") + (v.wIsWeight ? " weight" : "") +
         " activation=" + std::to_string(int(v.activation)) + " stages=" + std::to_string(v.stages);
}

class GemmKernelTest : public KernelTest {
protected:
  /// Those of `tiles` whose kernels the executor runs: a GPU before Hopper runs those of mma.
  static std::vector<GemmTile> here(std::span<const GemmTile> tiles) {
    std::vector<GemmTile> run(tiles.begin(), tiles.end());
    if (const Result<Gpu> gpu = findGpu(0);
        !isReference() && !(gpu.isOk() && checkGpu(*gpu, kHopper).isOk()))
      std::erase_if(run, [](const GemmTile &tile) { return !tile.mma; });
    return run;
  }

  /// "gemm_f16_64x80_1" for "gemm".
  static std::string kernelOf(const std::string &family, const GemmTile &tile, DType dtype) {
    return named(family, dtype) + "_" + std::string(tile.name);
  }

  /// A launch of the family's kernel for a plan, without activation and operands.
  static KernelLaunch recordOf(const std::string &family, const GemmTile &tile, DType dtype,
                               int64_t m, int64_t n, int64_t k, uint32_t multiprocessors) {
    KernelLaunch launch = launchOfKernel(kernelOf(family, tile, dtype));
    std::ranges::copy(tile.grid(m, n, multiprocessors), launch.grid);
    launch.block[0] = tile.threads();
    launch.sharedBytes = tile.sharedBytes(mostStages(tile));
    launch.ints = {m, n, k, int64_t(Activation::None), 0};
    return launch;
  }

  /// Runs a plan from a matrix to one of the same type, with and without programmatic edges, and
  /// compares the results. It repeats this with other matrices, so that memory holds the values of
  /// the previous run.
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

  /// A launch of the family's kernel with x, w, bias, residual and y. The tensors of a strided
  /// variant begin at an offset and have different gaps between rows, full of NaN.
  static Launch launchOf(const std::string &family, const GemmTile &tile, const Numbers &p,
                         const Variant &v) {
    const auto matrix = [&](int64_t rows, int64_t columns, int64_t gap) {
      return v.strided ? emptyTensor(p.dtype, {rows, columns}, {columns + gap, 1}, gap)
                       : emptyTensor(p.dtype, {rows, columns});
    };
    const auto optional = [](bool is, HostTensor tensor, const std::vector<double> &values) {
      return is ? std::optional(withElements(std::move(tensor), values)) : std::nullopt;
    };
    // A grid for four SMs, so that pairs compute several tiles; or for twelve SMs: a wide cluster
    // and a tail launch of two pairs.
    const auto grid = tile.grid(p.m, p.n, tile.hasWideClusters() ? 12 : 4);
    return {.kernel = kernelOf(family, tile, p.dtype),
            .blocks = grid[0],
            .threads = tile.threads(),
            .reads = {withElements(matrix(p.m, p.k, 8), p.x),
                      withElements(matrix(p.n, p.k, 16), p.w),
                      optional(v.bias, emptyTensor(p.dtype, {p.n}), p.bias),
                      optional(v.residual, matrix(p.m, p.n, 24), p.residual)},
            .writes = {matrix(p.m, p.n, 32)},
            .ints = {p.m, p.n, p.k, int64_t(v.activation), v.gates},
            .blocksY = grid[1],
            .sharedBytes = tile.sharedBytes(v.stages),
            .constantReads = v.wIsWeight ? 0b110u : 0};
  }

  /// The error bound of a sum of K products in f32, relative to the sum of their magnitudes.
  static double summing(const Numbers &p) { return p.k * 0x1p-24 + 0x1p-20; }

  /// Expects element `i` of y to be the epilogue's result for `sum`, which includes the bias and is
  /// known up to `error`.
  static void expectElement(const HostTensor &y, uint64_t i, const Numbers &p, const Variant &v,
                            double sum, double error, bool residualFirst = false) {
    double value = sum;
    const auto round = [&] {
      error += rounding(p.dtype) * (std::abs(value) + error) + smallest(p.dtype);
    };
    const auto addResidual = [&] {
      if (v.gates) {
        value *= p.residual[i];
        error *= std::abs(p.residual[i]);
      } else {
        value += p.residual[i];
      }
      round();
    };
    round();
    if (v.residual && residualFirst)
      addResidual();
    if (v.activation != Activation::None) {
      value = activate(v.activation, value);
      // GELU has the largest slope of all activations, and the largest error.
      error = 1.13 * error + (v.activation == Activation::Gelu ? kGeluError : 1e-6);
      round();
    }
    if (v.residual && !residualFirst)
      addResidual();
    ASSERT_NEAR(y.at(i), value, error) << "row " << i / p.n << " column " << i % p.n;
  }
};

/// For tests that also need other kernels for Hopper.
class HopperGemmTest : public GemmKernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    skipUnlessGpuRuns(kHopper);
  }
};

} // namespace cgc::test
