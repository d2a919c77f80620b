// gemm_f32 and gemm_sgd_f32 against double precision: operands with dense rows and dense columns,
// tiles and steps that leave a rest, every split of K, bias, sums of rows.
#include "runtime/kernels/gemm/gemm_f32.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

class GemmF32 : public KernelTest {
protected:
  struct Case {
    int64_t m, n, k;
    bool columnsOfA = false, columnsOfB = false, bias = false, sums = false;
    int64_t padding = 0; ///< Elements between lines of the operands and of y.
  };

  void compare(const Case &c, int64_t split) {
    SCOPED_TRACE(std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) +
                 (c.columnsOfA ? " columns of a" : "") + (c.columnsOfB ? " columns of b" : "") +
                 " by " + std::to_string(split));
    const auto matrix = [&](int64_t rows, bool columns, unsigned seed) {
      const int64_t line = (columns ? rows : c.k) + c.padding;
      return withRandom(
          emptyTensor(DType::F32, {rows, c.k},
                      columns ? std::vector<int64_t>{1, line} : std::vector<int64_t>{line, 1}),
          seed);
    };
    const HostTensor a = matrix(c.m, c.columnsOfA, 1), b = matrix(c.n, c.columnsOfB, 2),
                     bias = withRandom(emptyTensor(DType::F32, {c.n}), 3);
    const auto results =
        launch({.kernel = "gemm_f32_" + std::to_string(split),
                .blocks = uint64_t(gemmF32Tiles(c.n) * split),
                .threads = kGemmF32Threads,
                .reads = {a, b, c.bias ? std::optional(bias) : std::nullopt},
                .writes = {emptyTensor(DType::F32, {c.m, c.n}, {c.n + c.padding, 1}),
                           c.sums ? emptyTensor(DType::F32, {c.m}) : absentTensor()},
                .ints = {c.m, c.n, c.k},
                .blocksY = uint32_t(gemmF32Tiles(c.m)),
                .sharedBytes = kGemmF32SharedBytes});
    const double error = 4e-6 * std::sqrt(double(c.k));
    expectNear(
        results[0],
        [&](uint64_t i) {
          const int64_t row = int64_t(i) / c.n, column = int64_t(i) % c.n;
          double sum = c.bias ? bias.at(column) : 0;
          for (int64_t j = 0; j < c.k; ++j)
            sum += a.at(row * c.k + j) * b.at(column * c.k + j);
          return sum;
        },
        1e-6, error);
    if (c.sums)
      expectNear(
          results[1],
          [&](uint64_t row) {
            double sum = 0;
            for (int64_t j = 0; j < c.k; ++j)
              sum += a.at(row * c.k + j);
            return sum;
          },
          1e-6, error);
  }
};
CGC_ON_ALL_EXECUTORS(GemmF32);

TEST_P(GemmF32, OfAnyLayout) {
  skipUnlessGpuRuns(findKernel("gemm_f32_1")->traits);
  for (const int64_t split : kGemmF32Splits)
    for (const bool columnsOfA : {false, true})
      for (const bool columnsOfB : {false, true})
        for (const int64_t padding : {0, 4})
          compare({.m = 72,
                   .n = 132,
                   .k = 300,
                   .columnsOfA = columnsOfA,
                   .columnsOfB = columnsOfB,
                   .bias = !columnsOfA,
                   .sums = columnsOfB,
                   .padding = padding},
                  split);
}

/// Sizes below and above a tile and a step, and ranks of a cluster without a step.
TEST_P(GemmF32, OfAnySize) {
  skipUnlessGpuRuns(findKernel("gemm_f32_1")->traits);
  for (const int64_t split : kGemmF32Splits)
    for (const int64_t m : {1, 63, 64, 65})
      for (const int64_t n : {4, 64, 68})
        for (const int64_t k : {4, 32, 36, 260})
          compare({.m = m, .n = n, .k = k, .bias = m % 2 == 0, .sums = true}, split);
}

/// The step of a linear layer of 64 samples and 1024 features.
TEST_P(GemmF32, OfALinearLayer) {
  skipUnlessGpuRuns(findKernel("gemm_f32_1")->traits);
  for (const int64_t split : {6, 8})
    compare({.m = 64, .n = 1024, .k = 1024, .bias = true}, split);
  compare({.m = 1024, .n = 1024, .k = 64, .columnsOfA = true, .columnsOfB = true, .sums = true}, 1);
  compare({.m = 64, .n = 1024, .k = 1024, .columnsOfB = true}, 8);
}

/// A NaN reaches its row, or its column, and nothing else.
TEST_P(GemmF32, KeepsRowsApart) {
  skipUnlessGpuRuns(findKernel("gemm_f32_1")->traits);
  for (const int64_t split : kGemmF32Splits) {
    constexpr int64_t kM = 70, kN = 72, kK = 292;
    std::vector<double> a(kM * kK, 0.25), b(kN * kK, 0.5);
    a[66 * kK + 290] = NAN;
    b[3 * kK + 5] = NAN;
    const auto results =
        launch({.kernel = "gemm_f32_" + std::to_string(split),
                .blocks = uint64_t(gemmF32Tiles(kN) * split),
                .threads = kGemmF32Threads,
                .reads = {withValues(emptyTensor(DType::F32, {kM, kK}), a),
                          withValues(emptyTensor(DType::F32, {kN, kK}), b), std::nullopt},
                .writes = {emptyTensor(DType::F32, {kM, kN}), emptyTensor(DType::F32, {kM})},
                .ints = {kM, kN, kK},
                .blocksY = uint32_t(gemmF32Tiles(kM)),
                .sharedBytes = kGemmF32SharedBytes});
    expectNear(results[0],
               [&](uint64_t i) { return i / kN == 66 || i % kN == 3 ? NAN : 0.125 * kK; });
    expectNear(results[1], [&](uint64_t row) { return row == 66 ? NAN : 0.25 * kK; });
  }
}

/// A step of SGD: weights and biases that are updated elsewhere, and with their absence; tiles and
/// steps that leave a rest.
TEST_P(GemmF32, UpdatesByGradients) {
  skipUnlessGpuRuns(findKernel("gemm_sgd_f32_1")->traits);
  constexpr int64_t kM = 72, kN = 132, kK = 100;
  constexpr double kLr = 0.0625, kDecay = 0.5;
  // As the gradients of a linear layer are: both with dense columns.
  const HostTensor a = withRandom(emptyTensor(DType::F32, {kM, kK}, {1, kM}), 1),
                   b = withRandom(emptyTensor(DType::F32, {kN, kK}, {1, kN}), 2),
                   weight = withRandom(emptyTensor(DType::F32, {kM, kN}), 3),
                   bias = withRandom(emptyTensor(DType::F32, {kM}), 4);
  const auto expected = [&](double value, double gradient) {
    return value - kLr * (gradient + kDecay * value);
  };
  for (const int64_t split : kGemmF32Splits)
    for (const bool isWhole : {true, false}) {
      SCOPED_TRACE("by " + std::to_string(split) + (isWhole ? "" : ", the weight alone"));
      const auto present = [&](HostTensor tensor) {
        return isWhole ? std::optional(std::move(tensor)) : std::nullopt;
      };
      const auto result = [&](DType dtype, std::vector<int64_t> sizes) {
        return isWhole ? emptyTensor(dtype, std::move(sizes)) : absentTensor();
      };
      const auto results =
          launch({.kernel = "gemm_sgd_f32_" + std::to_string(split),
                  .blocks = uint64_t(gemmF32Tiles(kN) * split),
                  .threads = kGemmF32Threads,
                  .reads = {a, b, withValues(emptyTensor(DType::F32, {}), {kLr}), weight,
                            present(bias), present(withValues(emptyTensor(DType::I64, {}), {41}))},
                  .writes = {emptyTensor(DType::F32, {kM, kN}), result(DType::F32, {kM}),
                             result(DType::I64, {})},
                  .ints = {kM, kN, kK},
                  .floats = {kDecay},
                  .blocksY = uint32_t(gemmF32Tiles(kM)),
                  .sharedBytes = kGemmF32SharedBytes});
      expectNear(
          results[0],
          [&](uint64_t i) {
            const int64_t row = int64_t(i) / kN, column = int64_t(i) % kN;
            double sum = 0;
            for (int64_t j = 0; j < kK; ++j)
              sum += a.at(row * kK + j) * b.at(column * kK + j);
            return expected(weight.at(i), sum);
          },
          1e-6, 4e-6);
      if (!isWhole)
        continue;
      expectNear(
          results[1],
          [&](uint64_t row) {
            double sum = 0;
            for (int64_t j = 0; j < kK; ++j)
              sum += a.at(row * kK + j);
            return expected(bias.at(row), sum);
          },
          1e-6, 4e-6);
      EXPECT_EQ(results[2].at(0), 42);
    }
}

} // namespace
} // namespace cgc::test
