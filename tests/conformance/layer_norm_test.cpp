// The layer_norm kernels against double precision at odd shapes, and the row statistics that they
// write.
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

} // namespace
} // namespace cgc::test
