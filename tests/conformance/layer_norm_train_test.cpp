// layer_norm_statistics, layer_norm_backward and layer_norm_parameters against double precision.
#include "runtime/kernels/rowwise/layer_norm_train.h"
#include "tests/conformance/kernel_fixture.h"

#include <algorithm>

namespace cgc::test {
namespace {

/// Rows and columns, from the fewest columns to the most of each kernel.
constexpr std::pair<int64_t, int64_t> kTrainedShapes[] = {
    {1, 4},     {3200, 4},  {5, 64},     {77, 512}, {1, 768},  {3200, 768}, {5, 1024},
    {77, 1024}, {77, 1028}, {300, 1028}, {5, 1280}, {1, 2048}, {77, 2048}};
constexpr double kTrainedEps = 1e-5;

/// The values of a dense tensor.
std::vector<double> valuesOf(const HostTensor &tensor) {
  return decodeAll(tensor.dtype, tensor.bytes);
}

std::string kernelOf(const std::string &name, DType dtype, int64_t columns) {
  return named(name, dtype) + "_" + std::to_string(normTrainColumns(columns));
}

std::optional<HostTensor> optional(bool is, const HostTensor &tensor) {
  return is ? std::optional(tensor) : std::nullopt;
}

class LayerNormTrain : public KernelTest {
protected:
  struct Statistics {
    DType dtype; ///< Of the result.
    int64_t rows, columns;
    bool weight = true, bias = true;
    std::optional<DType> addend = {};
  };

  void checkStatistics(const Statistics &c) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.columns));
    const HostTensor matrix = emptyTensor(DType::F32, {c.rows, c.columns}),
                     row = emptyTensor(DType::F32, {c.columns}),
                     statistics = emptyTensor(DType::F32, {c.rows, 1});
    const HostTensor x = withRandom(matrix, 1), weight = withRandom(row, 2),
                     bias = withRandom(row, 3);
    Launch l{.kernel = kernelOf("layer_norm_statistics", c.dtype, c.columns),
             .blocks = normStatisticsBlocks(c.rows),
             .threads = kNormStatisticsThreads,
             .reads = {x, optional(c.weight, weight), optional(c.bias, bias), std::nullopt},
             .writes = {emptyTensor(c.dtype, {c.rows, c.columns}), statistics, statistics},
             .ints = {c.rows, c.columns},
             .floats = {kTrainedEps}};
    std::vector<double> input = valuesOf(x);
    if (c.addend) {
      const HostTensor addend = withRandom(emptyTensor(*c.addend, {c.rows, c.columns}), 4);
      l.reads[3] = addend;
      l.writes.push_back(matrix);
      const std::vector<double> more = valuesOf(addend);
      for (size_t i = 0; i < input.size(); ++i)
        input[i] += more[i];
    }
    const std::vector<HostTensor> results = launch(l);
    if (c.addend)
      expectNear(results[3], [&](uint64_t i) { return input[i]; });

    const std::vector<double> weights = valuesOf(weight), biases = valuesOf(bias);
    std::vector<double> y(input.size()), means(c.rows), rstds(c.rows);
    // The error of f32 where the subtraction of the mean cancels.
    double cancelled = 0;
    for (int64_t r = 0; r < c.rows; ++r) {
      const double *const values = &input[r * c.columns];
      double squares = 0, largest = 0;
      for (int64_t i = 0; i < c.columns; ++i)
        means[r] += values[i] / double(c.columns);
      for (int64_t i = 0; i < c.columns; ++i) {
        squares += std::pow(values[i] - means[r], 2) / double(c.columns);
        largest = std::max(largest, std::abs(values[i]));
      }
      rstds[r] = 1 / std::sqrt(squares + kTrainedEps);
      cancelled = std::max(cancelled, 0x1p-21 * largest * rstds[r]);
      for (int64_t i = 0; i < c.columns; ++i)
        y[r * c.columns + i] = (values[i] - means[r]) * rstds[r] * (c.weight ? weights[i] : 1) +
                               (c.bias ? biases[i] : 0);
    }
    double largestWeight = 1;
    for (const double w : weights)
      largestWeight = std::max(largestWeight, std::abs(w));
    expectNear(
        results[0], [&](uint64_t i) { return y[i]; }, 1e-6, 1e-5 + largestWeight * cancelled);
    expectNear(results[1], [&](uint64_t r) { return means[r]; }, 1e-6, 1e-6);
    expectNear(results[2], [&](uint64_t r) { return rstds[r]; }, 1e-6 + cancelled);
  }

  struct Backward {
    DType dtype; ///< Of the gradient, and of the copy.
    int64_t rows, columns;
    bool weight = true, residual = false, copy = false;
    int64_t multiprocessors = 132;
  };

  void checkBackward(const Backward &c) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.columns));
    const HostTensor matrix = emptyTensor(DType::F32, {c.rows, c.columns}),
                     narrow = emptyTensor(c.dtype, {c.rows, c.columns}),
                     row = emptyTensor(DType::F32, {c.columns}),
                     statistics = emptyTensor(DType::F32, {c.rows, 1});
    const HostTensor grad = withRandom(narrow, 1), x = withRandom(matrix, 2),
                     mean = withRandom(statistics, 3), weight = withRandom(row, 5),
                     residual = withRandom(matrix, 6);
    std::vector<double> positive = valuesOf(withRandom(statistics, 4));
    for (double &value : positive)
      value = 0.5 + std::abs(value);
    const HostTensor rstd = withValues(statistics, positive);
    const uint64_t blocks = normBackwardBlocks(c.rows, c.columns, c.multiprocessors);
    const std::vector<HostTensor> results = launch(
        {.kernel = kernelOf("layer_norm_backward", c.dtype, c.columns),
         .blocks = blocks,
         .threads = normBackwardThreads(c.columns),
         .reads = {grad, x, mean, rstd, optional(c.weight, weight), optional(c.residual, residual)},
         .writes = {matrix, c.copy ? narrow : absentTensor(),
                    emptyTensor(DType::F32, {int64_t(blocks), 2, c.columns})},
         .ints = {c.rows, c.columns},
         .sharedBytes = normBackwardSharedBytes(c.columns)});

    const std::vector<double> grads = valuesOf(grad), xs = valuesOf(x), means = valuesOf(mean),
                              rstds = valuesOf(rstd), weights = valuesOf(weight),
                              residuals = valuesOf(residual);
    std::vector<double> gradX(xs.size()), sums(2 * c.columns), normalized(c.columns),
        slopes(c.columns);
    double scale = 1, sumScale = 1; // The largest terms, which errors are relative to.
    for (int64_t r = 0; r < c.rows; ++r) {
      double slope = 0, product = 0;
      for (int64_t i = 0; i < c.columns; ++i) {
        const int64_t at = r * c.columns + i;
        normalized[i] = (xs[at] - means[r]) * rstds[r];
        slopes[i] = grads[at] * (c.weight ? weights[i] : 1);
        sums[i] += grads[at] * normalized[i];
        sums[c.columns + i] += grads[at];
        sumScale = std::max(sumScale, std::abs(grads[at]) * std::max(1.0, std::abs(normalized[i])));
        slope += slopes[i] / double(c.columns);
        product += slopes[i] * normalized[i] / double(c.columns);
      }
      for (int64_t i = 0; i < c.columns; ++i) {
        gradX[r * c.columns + i] = (slopes[i] - slope - normalized[i] * product) * rstds[r] +
                                   (c.residual ? residuals[r * c.columns + i] : 0);
        scale = std::max(scale, std::abs(slopes[i]) * std::max(1.0, std::pow(normalized[i], 2)) *
                                    rstds[r]);
      }
    }
    expectNear(results[0], [&](uint64_t i) { return gradX[i]; }, 1e-6, 2e-6 * scale);
    expectNear(results[1], [&](uint64_t i) { return gradX[i]; }, 1e-6, 2e-6 * scale);
    const double tolerance = 1e-6 * sumScale * std::sqrt(double(c.rows));
    for (const auto &[hasWeight, hasBias] : {std::pair(true, true), {true, false}, {false, true}}) {
      const std::vector<HostTensor> parameters =
          launch({.kernel = "layer_norm_parameters_f32",
                  .blocks = uint64_t(c.columns + kNormParameterColumns - 1) / kNormParameterColumns,
                  .threads = kNormParameterThreads,
                  .reads = {results[2]},
                  .writes = {hasWeight ? row : absentTensor(), hasBias ? row : absentTensor()},
                  .ints = {int64_t(blocks), c.columns}});
      expectNear(parameters[0], [&](uint64_t i) { return sums[i]; }, 1e-5, tolerance);
      expectNear(parameters[1], [&](uint64_t i) { return sums[c.columns + i]; }, 1e-5, tolerance);
    }
  }
};
CGC_ON_ALL_EXECUTORS(LayerNormTrain);

TEST_P(LayerNormTrain, Statistics) {
  for (const DType dtype : kFloats)
    for (const auto &[rows, columns] : kTrainedShapes)
      checkStatistics({.dtype = dtype, .rows = rows, .columns = columns});
}

TEST_P(LayerNormTrain, StatisticsWithoutWeightOrBias) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : {4, 768, 1028})
      for (const bool weight : {false, true})
        checkStatistics({dtype, 5, columns, weight, false}),
            checkStatistics({dtype, 5, columns, false, weight});
}

/// Narrow and wide addends, with the sum.
TEST_P(LayerNormTrain, StatisticsOfASum) {
  for (const DType dtype : kFloats)
    for (const DType addend : {DType::F32, dtype})
      for (const auto &[rows, columns] : kTrainedShapes)
        checkStatistics({.dtype = dtype, .rows = rows, .columns = columns, .addend = addend});
}

TEST_P(LayerNormTrain, Backward) {
  for (const DType dtype : kFloats)
    for (const auto &[rows, columns] : kTrainedShapes)
      checkBackward({.dtype = dtype, .rows = rows, .columns = columns});
}

TEST_P(LayerNormTrain, BackwardWithResidualAndCopy) {
  for (const DType dtype : kFloats)
    for (const auto &[rows, columns] : {std::pair(1, 4), {77, 512}, {5, 1024}, {77, 1028}})
      for (const bool weight : {false, true})
        for (const bool residual : {false, true})
          for (const bool copy : {false, true})
            if (!copy || dtype != DType::F32)
              checkBackward({dtype, rows, columns, weight, residual, copy});
}

/// CTAs with many rows each, and one CTA.
TEST_P(LayerNormTrain, BackwardOfFewCtas) {
  for (const DType dtype : kFloats)
    for (const int64_t multiprocessors : {1, 3})
      for (const int64_t columns : {64, 1280})
        checkBackward(
            {.dtype = dtype, .rows = 301, .columns = columns, .multiprocessors = multiprocessors});
}

} // namespace
} // namespace cgc::test
