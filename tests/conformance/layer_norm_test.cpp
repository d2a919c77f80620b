// The layer_norm kernels against double precision at odd shapes, and the row statistics that they
// write; chains against single norms.
#include "tests/conformance/gemm_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

struct LayerNormCase {
  DType dtype;
  int64_t rows, columns;
  bool weight, bias;
  int64_t addendRows = 0;        ///< Above 0: for add_layer_norm.
  uint64_t offset = 0;           ///< Offset of every tensor in its memory, in elements.
  bool byF32 = false;            ///< Weight and bias are f32.
  bool statistics = false;       ///< Whether to request the row statistics of y.
  int64_t multiprocessors = 132; ///< Those that the grid is for. With one, a warp has many rows.
};

class LayerNorm : public KernelTest {
protected:
  void check(const LayerNormCase &c) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.columns) +
                 (c.weight ? " weight" : "") + (c.bias ? " bias" : ""));
    const HostTensor matrix = emptyTensor(c.dtype, {c.rows, c.columns}, {}, c.offset),
                     row = emptyTensor(c.byF32 ? DType::F32 : c.dtype, {c.columns}, {}, c.offset);
    const HostTensor x = withRandom(matrix, 1), weight = withRandom(row, 2),
                     bias = withRandom(row, 3);
    const auto optional = [](bool is, const HostTensor &tensor) {
      return is ? std::optional(tensor) : std::nullopt;
    };
    const bool adds = c.addendRows > 0;
    Launch layerNorm{
        .kernel = named(std::string(adds ? "add_" : "") + "layer_norm" + (c.byF32 ? "_by_f32" : ""),
                        c.dtype),
        .blocks = layerNormBlocks(c.rows, c.columns % 2 == 0 ? c.multiprocessors : 1),
        .threads = kLayerNormThreads,
        .reads = {x, optional(c.weight, weight), optional(c.bias, bias)},
        .writes = {matrix},
        .ints = {c.rows, c.columns},
        .floats = {1e-5}};
    HostTensor input = x;
    if (adds) {
      const HostTensor addend = withRandom(emptyTensor(c.dtype, {c.addendRows, c.columns}), 4);
      layerNorm.reads.insert(layerNorm.reads.begin() + 1, addend);
      layerNorm.writes.push_back(matrix);
      layerNorm.ints.push_back(c.addendRows);
      std::vector<double> sums(c.offset + x.elements());
      for (uint64_t i = 0; i < x.elements(); ++i)
        sums[c.offset + i] = x.at(i) + addend.at(i % addend.elements());
      input = withValues(x, sums);
    }
    const std::vector<HostTensor> results = launch(layerNorm);
    if (c.statistics) {
      layerNorm.writes.push_back(emptyRowStatistics(c.rows, c.columns));
      const std::vector<HostTensor> both = launch(layerNorm);
      EXPECT_EQ(both[0].bytes, results[0].bytes);
      expectRowStatisticsOf(both[0], c.rows, both[1]);
    }
    if (adds)
      expectEqual(results[0], [&](uint64_t i) { return input.at(i); });

    std::vector<double> expected(x.elements());
    double worstCancelled = 0;
    for (int64_t r = 0; r < c.rows; ++r) {
      const auto at = [&](int64_t k) { return input.at(r * c.columns + k); };
      double mean = 0, variance = 0, largest = 0;
      for (int64_t k = 0; k < c.columns; ++k)
        mean += at(k) / c.columns;
      for (int64_t k = 0; k < c.columns; ++k)
        variance += std::pow(at(k) - mean, 2) / c.columns;
      // The error of f32 where the subtraction of the mean cancels because a row's elements are
      // nearly equal.
      for (int64_t k = 0; k < c.columns; ++k)
        largest = std::max(largest, std::abs(at(k)));
      const double cancelled = 0x1p-22 * largest / std::sqrt(variance + 1e-5);
      for (int64_t k = 0; k < c.columns; ++k) {
        double &y = expected[r * c.columns + k];
        y = (at(k) - mean) / std::sqrt(variance + 1e-5) * (c.weight ? weight.at(k) : 1) +
            (c.bias ? bias.at(k) : 0);
        worstCancelled =
            std::max(worstCancelled, cancelled * (c.weight ? 1 + std::abs(weight.at(k)) : 1));
      }
    }
    expectNear(
        results.back(), [&](uint64_t i) { return expected[i]; }, rounding(c.dtype) + worstCancelled,
        2e-5 + worstCancelled);
  }
};
CGC_ON_ALL_EXECUTORS(LayerNorm);

constexpr std::pair<int64_t, int64_t> kLayerNormShapes[] = {
    {1, 1},      {3, 2},    {1, 31},   {2, 33},   {5, 255},  {7, 257},  {50, 768},
    {257, 1024}, {3, 2047}, {3, 2048}, {3, 2049}, {2, 5003}, {70000, 3}};

TEST_P(LayerNorm, OddShapes) {
  for (const DType dtype : kFloats)
    for (const auto &[rows, columns] : kLayerNormShapes)
      check({dtype, rows, columns, true, true});
}

TEST_P(LayerNorm, WeightAndBiasAreOptional) {
  for (const DType dtype : kFloats)
    for (const bool weight : {false, true})
      check({dtype, 4, 771, weight, !weight}), check({dtype, 4, 2500, false, false});
}

TEST_P(LayerNorm, OfASum) {
  for (const DType dtype : kFloats)
    for (const int64_t addendRows : {1, 3, 9})
      for (const int64_t columns : {2, 257, 768, 2049})
        check({dtype, 9, columns, true, true, addendRows});
}

TEST_P(LayerNorm, TensorsThatBeginBetweenVectors) {
  for (const DType dtype : kFloats)
    for (const int64_t addendRows : {0, 4})
      check({dtype, 4, 768, true, true, addendRows, 1});
}

TEST_P(LayerNorm, ByWeightAndBiasInF32) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t addendRows : {0, 5})
      for (const int64_t columns : {3, 257, 768, 771, 2056}) {
        check({dtype, 5, columns, true, true, addendRows, 0, true});
        check({dtype, 5, columns, false, true, addendRows, 1, true});
      }
}

TEST_P(LayerNorm, WritesRowStatistics) {
  constexpr std::pair<int64_t, int64_t> kShapesOfGroups[] = {
      {1, 64}, {3, 192}, {7, 512}, {50, 768}, {5, 960}, {257, 1024}, {5000, 320}};
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const bool byF32 : {false, true})
      for (const auto &[rows, columns] : kShapesOfGroups)
        for (const bool parameters : {false, true})
          check({.dtype = dtype,
                 .rows = rows,
                 .columns = columns,
                 .weight = parameters,
                 .bias = parameters,
                 .byF32 = byF32,
                 .statistics = true});
}

/// Columns of rows that share a warp on a GPU, and one more: 257 is not a multiple of a vector.
constexpr int64_t kShortRows[] = {8, 24, 64, 72, 96, 128, 136, 192, 200, 256, 257, 264};

/// Counts of rows that no warp divides; those of a warp's lanes and loop are filled in part.
constexpr int64_t kFewAndManyRows[] = {1, 3, 1001};

TEST_P(LayerNorm, ShortRows) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : kShortRows)
      for (const int64_t rows : kFewAndManyRows)
        for (const bool weight : {false, true})
          for (const bool bias : {false, true})
            check({.dtype = dtype,
                   .rows = rows,
                   .columns = columns,
                   .weight = weight,
                   .bias = bias,
                   .multiprocessors = weight ? 1 : 132});
}

TEST_P(LayerNorm, ShortRowsOfASum) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : kShortRows)
      for (const int64_t rows : kFewAndManyRows)
        for (const int64_t addendRows : {int64_t(1), int64_t(7), int64_t(500), rows})
          check({.dtype = dtype,
                 .rows = rows,
                 .columns = columns,
                 .weight = true,
                 .bias = true,
                 .addendRows = addendRows,
                 .multiprocessors = 1});
}

TEST_P(LayerNorm, ShortRowsByWeightAndBiasInF32) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t columns : kShortRows)
      for (const int64_t addendRows : {0, 5})
        check({.dtype = dtype,
               .rows = 1001,
               .columns = columns,
               .weight = true,
               .bias = true,
               .addendRows = addendRows,
               .byF32 = true,
               .multiprocessors = 1});
}

TEST_P(LayerNorm, ShortRowsBetweenVectors) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : {8, 72, 128})
      check({.dtype = dtype,
             .rows = 1001,
             .columns = columns,
             .weight = true,
             .bias = true,
             .offset = 1,
             .multiprocessors = 1});
}

TEST_P(LayerNorm, WritesRowStatisticsOfShortRows) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t columns : {64, 128, 192, 256})
      for (const int64_t rows : kFewAndManyRows)
        for (const bool byF32 : {false, true})
          check({.dtype = dtype,
                 .rows = rows,
                 .columns = columns,
                 .weight = true,
                 .bias = true,
                 .byF32 = byF32,
                 .statistics = true,
                 .multiprocessors = 1});
}

/// A launch of layer_norm_chain.
struct ChainCase {
  DType dtype;
  int64_t rows, columns;
  bool isTwice = false;
  Activation activation = Activation::None;
  unsigned parameters = 15; ///< Bits: weight, bias, and those of the second norm.
  bool byF32 = false;
  uint64_t offset = 0; ///< Of x and y in their memory, in elements.
  int64_t multiprocessors = 132;
};

class LayerNormChain : public KernelTest {
protected:
  static constexpr double kEps[] = {1e-5, 1e-3};

  /// A launch of `kernel` on the rows of x with weight and bias, and with the numbers of a chain.
  static Launch launchOf(const std::string &kernel, const ChainCase &c, const HostTensor &x) {
    return {.kernel = named(kernel + (c.byF32 ? "_by_f32" : ""), c.dtype),
            .blocks = layerNormBlocks(c.rows, c.multiprocessors),
            .threads = kLayerNormThreads,
            .reads = {x},
            .writes = {emptyTensor(c.dtype, {c.rows, c.columns}, {}, c.offset)},
            .ints = {c.rows, c.columns}};
  }
  /// The weight and the bias of a norm.
  static std::vector<std::optional<HostTensor>> parametersOf(const ChainCase &c, unsigned norm) {
    std::vector<std::optional<HostTensor>> parameters;
    for (const unsigned bit : {2 * norm, 2 * norm + 1})
      parameters.push_back(
          c.parameters >> bit & 1 && (norm == 0 || c.isTwice)
              ? std::optional(
                    withRandom(emptyTensor(c.byF32 ? DType::F32 : c.dtype, {c.columns}), 2 + bit))
              : std::nullopt);
    return parameters;
  }
  HostTensor chain(const ChainCase &c, const HostTensor &x) {
    Launch launched = launchOf("layer_norm_chain", c, x);
    for (const unsigned norm : {0u, 1u})
      std::ranges::copy(parametersOf(c, norm), std::back_inserter(launched.reads));
    launched.ints.insert(launched.ints.end(), {c.isTwice ? 2 : 1, int64_t(c.activation)});
    launched.floats = {kEps[0], kEps[1]};
    return launch(launched)[0];
  }
  HostTensor single(const ChainCase &c, const HostTensor &x, unsigned norm) {
    Launch launched = launchOf("layer_norm", c, x);
    std::ranges::copy(parametersOf(c, norm), std::back_inserter(launched.reads));
    launched.floats = {kEps[norm]};
    return launch(launched)[0];
  }
  static HostTensor rowsOf(const ChainCase &c) {
    return withRandom(emptyTensor(c.dtype, {c.rows, c.columns}, {}, c.offset), 1);
  }
  /// Expects the activation of the single norms, which round in between. `isExact`: the code of
  /// single norms is that of the chain.
  void check(const ChainCase &c, bool isExact) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.columns) + " of " +
                 std::string(dtypeName(c.dtype)) + " " + std::to_string(c.parameters) +
                 (c.isTwice ? " twice" : "") + (c.byF32 ? " by f32" : ""));
    const HostTensor x = rowsOf(c), y = chain(c, x);
    HostTensor expected = single(c, x, 0);
    if (c.isTwice)
      expected = single(c, expected, 1);
    if (isExact && c.activation == Activation::None)
      return expectEqual(y, [&](uint64_t i) { return expected.at(i); });
    // A few sums in another order, after which each norm may round to the next number.
    const double roundings = isExact ? 0 : (c.isTwice ? 16 : 2) * rounding(c.dtype) + 1e-6,
                 ofActivation = c.activation == Activation::Gelu && c.dtype != DType::F32
                                    ? kGeluError
                                : c.activation != Activation::None ? 2e-6
                                                                   : 0;
    expectNear(
        y, [&](uint64_t i) { return activate(c.activation, expected.at(i)); }, 1.2 * roundings,
        8 * roundings + ofActivation);
  }
};
CGC_ON_ALL_EXECUTORS(LayerNormChain);

TEST_P(LayerNormChain, TwoNorms) {
  for (const DType dtype : kFloats)
    for (const bool byF32 : {false, true})
      if (!byF32 || dtype != DType::F32)
        for (const auto &[rows, columns] : {std::pair(1, 264), {7, 320}, {50, 768}, {257, 1024}})
          for (const unsigned parameters : {0u, 6u, 9u, 15u})
            check({.dtype = dtype,
                   .rows = rows,
                   .columns = columns,
                   .isTwice = true,
                   .parameters = parameters,
                   .byF32 = byF32,
                   .multiprocessors = parameters == 15 ? 1 : 132},
                  /*isExact=*/true);
}

TEST_P(LayerNormChain, TwoNormsOfShortRows) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : {8, 24, 64, 136, 256})
      for (const int64_t rows : {1, 3, 1001})
        check({.dtype = dtype,
               .rows = rows,
               .columns = columns,
               .isTwice = true,
               .activation = rows == 3 ? Activation::Silu : Activation::None,
               .multiprocessors = 1},
              /*isExact=*/false);
}

TEST_P(LayerNormChain, EveryActivation) {
  for (const DType dtype : kFloats)
    for (int i = 0; i < kNumActivations; ++i)
      // Of each path: several rows for each warp, one row, and rows that are read three times.
      for (const int64_t columns : {8, 72, 128, 200, 257, 768, 1032})
        for (const int64_t rows : {2, 1001})
          if (rows == 2 || columns <= 200)
            check({.dtype = dtype,
                   .rows = rows,
                   .columns = columns,
                   .activation = Activation(i),
                   .parameters = i % 2 == 0 ? 3u : 1u,
                   .byF32 = dtype != DType::F32 && i % 3 == 0,
                   .multiprocessors = 1},
                  /*isExact=*/true);
}

TEST_P(LayerNormChain, RowsBetweenVectors) {
  for (const DType dtype : kFloats)
    for (const int64_t columns : {72, 768})
      check({.dtype = dtype,
             .rows = 9,
             .columns = columns,
             .activation = Activation::Gelu,
             .offset = 1},
            /*isExact=*/true);
}

/// A row with a NaN is NaN; others are as without it.
TEST_P(LayerNormChain, NaNStaysInItsRow) {
  for (const DType dtype : kFloats)
    for (const bool isTwice : {false, true})
      for (const int64_t columns : {64, 768}) {
        const ChainCase c = {.dtype = dtype,
                             .rows = 9,
                             .columns = columns,
                             .isTwice = isTwice,
                             .activation = Activation::Gelu};
        std::vector<double> values(size_t(c.rows * columns));
        const HostTensor x = rowsOf(c);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = x.at(i);
        values[size_t(4 * columns + 5)] = NAN;
        const HostTensor with = chain(c, withElements(x, values)), without = chain(c, x);
        for (uint64_t i = 0; i < with.elements(); ++i)
          if (i / columns == 4)
            ASSERT_TRUE(std::isnan(with.at(i))) << "element " << i;
          else
            ASSERT_EQ(with.at(i), without.at(i)) << "element " << i;
      }
}

} // namespace
} // namespace cgc::test
