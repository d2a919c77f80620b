// The kernels that move and reduce rows, against double precision at odd shapes: embedding, tokens,
// rows, patches, sum_rows, row_sums, normalize, argmax, softmax, log_softmax; and the row
// statistics that embedding writes.
#include "runtime/kernels/rowwise/patches.h"
#include "runtime/kernels/rowwise/row_sums.h"
#include "runtime/kernels/rowwise/softmax.h"
#include "runtime/kernels/rowwise/sum_rows.h"
#include "runtime/kernels/rowwise/warp_rows.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

class RowKernels : public KernelTest {
protected:
  /// Launches a kernel that processes each of `rows` rows with one warp.
  HostTensor warpRows(std::string kernel, int64_t rows,
                      std::vector<std::optional<HostTensor>> reads, const HostTensor &y,
                      std::vector<double> floats = {}) {
    return launch({.kernel = std::move(kernel),
                   .blocks = warpRowBlocks(rows),
                   .threads = kWarpRowThreads,
                   .reads = std::move(reads),
                   .writes = {y},
                   .floats = std::move(floats)})[0];
  }
};
CGC_ON_ALL_EXECUTORS(RowKernels);

constexpr int64_t kRows[] = {1, 3, 77, 257}, kColumnCounts[] = {1, 7, 64, 100, 771, 1024};

TEST_P(RowKernels, Embedding) {
  constexpr int64_t kTableRows = 11;
  for (const DType dtype : kFloats)
    for (const DType idType : {DType::I64, DType::I32})
      for (const int64_t rows : kRows)
        for (const int64_t columns : kColumnCounts)
          for (const int64_t positionRows : {int64_t(0), int64_t(1), rows}) {
            // Ids outside the table get the first or the last row.
            std::vector<double> ids(2 * rows);
            for (size_t i = 0; i < ids.size(); ++i)
              ids[i] = int64_t(i * 7 % (kTableRows + 4)) - 2;
            const auto clamped = [&](size_t i) {
              return std::clamp(ids[i], 0.0, kTableRows - 1.0);
            };
            const HostTensor table = withRandom(emptyTensor(dtype, {kTableRows, columns}), 1);
            std::optional<HostTensor> positions;
            if (positionRows > 0)
              positions = withRandom(emptyTensor(dtype, {positionRows, columns}), 2);
            const HostTensor y =
                warpRows(named("embedding", dtype), 2 * rows,
                         {table, withValues(emptyTensor(idType, {2, rows}), ids), positions},
                         emptyTensor(dtype, {2, rows, columns}));
            expectNear(y, [&](uint64_t i) {
              const uint64_t row = i / columns, column = i % columns;
              return table.at(clamped(row) * columns + column) +
                     (positions ? positions->at(row % positionRows * columns + column) : 0);
            });
          }
}

TEST_P(RowKernels, EmbeddingWritesRowStatistics) {
  constexpr int64_t kTableRows = 11;
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t rows : kRows)
      for (const int64_t columns : {64, 192, 512, 768, 1280})
        for (const bool hasPositions : {false, true}) {
          SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
          std::vector<double> ids(2 * rows);
          for (size_t i = 0; i < ids.size(); ++i)
            ids[i] = int64_t(i * 7 % kTableRows);
          std::optional<HostTensor> positions;
          if (hasPositions)
            positions = withRandom(emptyTensor(dtype, {rows, columns}), 2);
          Launch embedding{.kernel = named("embedding", dtype),
                           .blocks = warpRowBlocks(2 * rows),
                           .threads = kWarpRowThreads,
                           .reads = {withRandom(emptyTensor(dtype, {kTableRows, columns}), 1),
                                     withValues(emptyTensor(DType::I64, {2, rows}), ids),
                                     positions},
                           .writes = {emptyTensor(dtype, {2, rows, columns})}};
          const std::vector<HostTensor> alone = launch(embedding);
          embedding.writes.push_back(emptyRowStatistics(2 * rows, columns));
          const std::vector<HostTensor> both = launch(embedding);
          EXPECT_EQ(both[0].bytes, alone[0].bytes);
          expectRowStatisticsOf(both[0], 2 * rows, both[1]);
        }
}

TEST_P(RowKernels, Tokens) {
  for (const DType dtype : kFloats)
    for (const int64_t batch : {1, 3})
      for (const int64_t patches : {1, 49, 257})
        for (const int64_t columns : kColumnCounts)
          for (const bool hasPositions : {false, true}) {
            const HostTensor x = withRandom(emptyTensor(dtype, {batch, patches, columns}), 1),
                             token = withRandom(emptyTensor(dtype, {columns}), 2),
                             positions = withRandom(emptyTensor(dtype, {1 + patches, columns}), 3);
            const HostTensor y =
                warpRows(named("tokens", dtype), batch * (1 + patches),
                         {x, token, hasPositions ? std::optional(positions) : std::nullopt},
                         emptyTensor(dtype, {batch, 1 + patches, columns}));
            expectNear(y, [&](uint64_t i) {
              const int64_t column = i % columns, t = i / columns % (1 + patches),
                            image = i / columns / (1 + patches);
              return (t == 0 ? token.at(column)
                             : x.at((image * patches + t - 1) * columns + column)) +
                     (hasPositions ? positions.at(t * columns + column) : 0);
            });
          }
}

TEST_P(RowKernels, Rows) {
  for (const DType dtype : kFloats)
    for (const int64_t batch : kRows)
      for (const int64_t columns : kColumnCounts) {
        constexpr int64_t kCount = 5;
        std::vector<double> indices(batch);
        for (int64_t i = 0; i < batch; ++i)
          indices[i] = i * 3 % (kCount + 2) - 1; // Some are outside x.
        const auto index = [&](int64_t b) {
          return std::clamp<int64_t>(int64_t(indices[b]), 0, kCount - 1);
        };
        const std::vector<int64_t> sizes = {batch, kCount, columns};
        for (const HostTensor &layout :
             {emptyTensor(dtype, sizes), emptyTensor(dtype, sizes, {columns, batch * columns, 1}),
              emptyTensor(dtype, sizes, {kCount * (columns + 8), columns + 8, 1}, 8),
              emptyTensor(dtype, sizes, {kCount * columns + 1, columns, 1}, 1)}) {
          const HostTensor x = withRandom(layout, 1), y = emptyTensor(dtype, {batch, columns});
          expectEqual(warpRows(named("rows", dtype), batch, {x, std::nullopt}, y), [&](uint64_t i) {
            return x.at(i / columns * kCount * columns + i % columns);
          });
          for (const DType idType : {DType::I64, DType::I32})
            expectEqual(warpRows(named("rows", dtype), batch,
                                 {x, withValues(emptyTensor(idType, {batch}), indices)}, y),
                        [&](uint64_t i) {
                          const int64_t b = i / columns;
                          return x.at((b * kCount + index(b)) * columns + i % columns);
                        });
        }
      }
}

TEST_P(RowKernels, Patches) {
  struct Case {
    int64_t batch, channels, height, width, patchHeight, patchWidth, columns;
  };
  for (const DType dtype : kFloats)
    for (const Case &c :
         std::vector<Case>{{1, 3, 32, 32, 16, 16, 768},
                           {2, 3, 28, 42, 14, 14, 592},
                           {2, 3, 29, 44, 14, 14, 588}, // Some pixels belong to no patch.
                           {3, 1, 5, 7, 2, 3, 7},
                           {1, 2, 6, 4, 1, 4, 8},
                           {1, 3, 224, 224, 32, 32, 3072}}) {
      const int64_t down = c.height / c.patchHeight, across = c.width / c.patchWidth;
      const HostTensor image =
          withRandom(emptyTensor(dtype, {c.batch, c.channels, c.height, c.width}), 1);
      const HostTensor y = emptyTensor(dtype, {c.batch * down * across, c.columns});
      const HostTensor result = launch({.kernel = named("patches", dtype),
                                        .blocks = patchesBlocks(y.bytes.size()),
                                        .threads = kPatchesThreads,
                                        .reads = {image},
                                        .writes = {y},
                                        .ints = {c.patchHeight, c.patchWidth}})[0];
      expectEqual(result, [&](uint64_t i) {
        const int64_t column = i % c.columns, row = i / c.columns;
        if (column >= c.channels * c.patchHeight * c.patchWidth)
          return 0.0;
        const int64_t dx = column % c.patchWidth, dy = column / c.patchWidth % c.patchHeight,
                      channel = column / c.patchWidth / c.patchHeight;
        const int64_t left = row % across * c.patchWidth, top = row / across % down * c.patchHeight,
                      b = row / across / down;
        return image.at(((b * c.channels + channel) * c.height + top + dy) * c.width + left + dx);
      });
    }
}

TEST_P(RowKernels, SumRows) {
  for (const DType dtype : kFloats)
    for (const int64_t batch : {1, 3})
      for (const int64_t rows : {1, 5, 31, 33, 257})
        for (const int64_t columns : {1, 7, 60, 64, 72, 771, 1280}) {
          SCOPED_TRACE(std::to_string(batch) + " times " + std::to_string(rows) + "x" +
                       std::to_string(columns));
          const std::vector<int64_t> sizes = {batch, rows, columns};
          // Dense; without the first row; token by token; rows that cannot be read as vectors; one
          // row broadcast to all.
          for (const HostTensor &layout :
               {emptyTensor(dtype, sizes),
                emptyTensor(dtype, sizes, {(rows + 1) * columns, columns, 1}, columns),
                emptyTensor(dtype, sizes, {columns, batch * columns, 1}),
                emptyTensor(dtype, sizes, {rows * (columns + 1), columns + 1, 1}, 3),
                emptyTensor(dtype, sizes, {columns, 0, 1})}) {
            // Memory outside the elements of x is NaN.
            std::vector<double> values(layout.elements());
            const HostTensor random = withRandom(layout, 1);
            for (uint64_t i = 0; i < values.size(); ++i)
              values[i] = random.at(i) + 1;
            const HostTensor x = withElements(layout, values);
            for (const DType sumType : {dtype, DType::F32}) {
              const HostTensor y = launch({.kernel = named("sum_rows", dtype),
                                           .blocks = batch * sumRowsSlices(columns, dtype),
                                           .threads = kSumRowsThreads,
                                           .reads = {x},
                                           .writes = {emptyTensor(sumType, {batch, columns})},
                                           .floats = {1 / double(rows)}})[0];
              expectNear(
                  y,
                  [&](uint64_t i) {
                    double sum = 0;
                    for (int64_t row = 0; row < rows; ++row)
                      sum += x.at((i / columns * rows + row) * columns + i % columns);
                    return sum / double(rows);
                  },
                  1e-6, 1e-6);
            }
          }
        }
}

/// One warp sums a row of up to 1024 columns; a CTA sums a longer one, or a split of it. The last
/// splits may be empty.
TEST_P(RowKernels, RowSums) {
  for (const DType dtype : kFloats)
    for (const int64_t rows : {1, 5, 9})
      for (const int64_t columns : {1, 7, 64, 1000, 1024, 1025, 1288, 5003})
        for (const int64_t splits : {1, 3, 64}) {
          if (splits > 1 && columns <= kRowSumsWarpColumns)
            continue;
          SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns) + ", " +
                       std::to_string(splits) + " splits");
          const HostTensor x = withRandom(emptyTensor(dtype, {rows, columns}), 1);
          for (const auto &[squares, root] : {std::pair(false, false), {true, false}, {true, true}})
            for (const DType sumType : {dtype, DType::F32}) {
              const HostTensor y = launch({.kernel = named("row_sums", dtype),
                                           .blocks = rowSumsBlocks(rows, columns, splits),
                                           .threads = kRowSumsThreads,
                                           .reads = {x},
                                           .writes = {emptyTensor(sumType, {rows, splits})},
                                           .ints = {columns, squares, root},
                                           .floats = {0.5}})[0];
              const int64_t part = ((columns + splits - 1) / splits + 7) / 8 * 8;
              expectNear(
                  y,
                  [&, squares = squares, root = root](uint64_t i) {
                    const int64_t row = i / splits, begin = i % splits * part;
                    double sum = 0;
                    for (int64_t k = begin; k < std::min(begin + part, columns); ++k) {
                      const double value = x.at(row * columns + k);
                      sum += squares ? value * value : value;
                    }
                    return root ? std::sqrt(sum / 2) : sum / 2;
                  },
                  2e-6, 2e-7 * double(columns));
            }
        }
}

TEST_P(RowKernels, Normalize) {
  for (const DType dtype : kFloats)
    for (const int64_t rows : kRows)
      for (const int64_t columns : kColumnCounts) {
        HostTensor x = withRandom(emptyTensor(dtype, {rows, columns}), 1);
        std::fill_n(x.bytes.begin(), columns * dtypeSize(dtype), std::byte{0}); // A row of zeros.
        const HostTensor y = warpRows(named("normalize", dtype), rows, {x},
                                      emptyTensor(dtype, {rows, columns}), {1e-6});
        std::vector<double> lengths(rows);
        for (uint64_t i = 0; i < x.elements(); ++i)
          lengths[i / columns] += x.at(i) * x.at(i);
        expectNear(
            y,
            [&](uint64_t i) { return x.at(i) / std::max(std::sqrt(lengths[i / columns]), 1e-6); },
            2e-6);
      }
}

TEST_P(RowKernels, Argmax) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32})
    for (const int64_t rows : kRows)
      for (const int64_t columns : {1, 2, 31, 32, 77, 1000}) {
        std::vector<double> values(rows * columns);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = int64_t(i * 2654435761u % 23) - 30; // All are negative; maxima repeat.
        if (isFloating(dtype))
          values[values.size() / 2] = values.back() = NAN;
        const HostTensor x = withValues(emptyTensor(dtype, {rows, columns}), values);
        const HostTensor y =
            warpRows(named("argmax", dtype), rows, {x}, emptyTensor(DType::I64, {rows}));
        expectEqual(y, [&](uint64_t row) {
          int64_t best = 0;
          for (int64_t k = 1; k < columns; ++k) {
            const double value = x.at(row * columns + k), most = x.at(row * columns + best);
            if (!std::isnan(most) && (std::isnan(value) || value > most))
              best = k;
          }
          return double(best);
        });
      }
  // Integers that round to the same float.
  HostTensor x = emptyTensor(DType::I64, {1, 3});
  const int64_t values[] = {INT64_MAX - 2, INT64_MAX, INT64_MAX - 1};
  std::memcpy(x.bytes.data(), values, sizeof(values));
  EXPECT_EQ(warpRows("argmax_i64", 1, {x}, emptyTensor(DType::I64, {1})).at(0), 1);
}

TEST_P(RowKernels, Softmax) {
  for (const bool isLog : {false, true})
    for (const DType dtype : kFloats)
      for (const int64_t rows : kRows)
        for (const int64_t columns : {1, 31, 77, 257, 1024, 1025, 5003}) {
          const HostTensor shape = emptyTensor(dtype, {rows, columns});
          HostTensor x = withRandom(shape, 1);
          // One element masked, and a row with all elements masked, for which LibTorch also gives
          // NaN.
          std::vector<double> values(x.elements());
          for (uint64_t i = 0; i < values.size(); ++i)
            values[i] = (columns > 1 && i % columns == 1) || (rows > 1 && i / columns == 1)
                            ? -INFINITY
                            : x.at(i) * 4;
          x = withValues(shape, values);
          const HostTensor y = launch({.kernel = named(isLog ? "log_softmax" : "softmax", dtype),
                                       .blocks = softmaxBlocks(rows, columns),
                                       .threads = kSoftmaxThreads,
                                       .reads = {x},
                                       .writes = {shape}})[0];
          std::vector<double> largest(rows, -INFINITY), sums(rows);
          for (uint64_t i = 0; i < x.elements(); ++i)
            largest[i / columns] = std::max(largest[i / columns], x.at(i));
          for (uint64_t i = 0; i < x.elements(); ++i)
            sums[i / columns] += std::exp(x.at(i) - largest[i / columns]);
          expectNear(
              y,
              [&](uint64_t i) {
                const double shifted = x.at(i) - largest[i / columns], sum = sums[i / columns];
                return isLog ? shifted - std::log(sum) : std::exp(shifted) / sum;
              },
              8e-6, isLog ? 1e-5 : 1e-9);
        }
}

/// exp(1000) is infinity in f32 and exp(-1000) is 0: only differences to the maximum are finite.
TEST_P(RowKernels, SoftmaxOfLargeValues) {
  constexpr int64_t kLargeRows = 3;
  for (const bool isLog : {false, true})
    for (const DType dtype : kFloats)
      for (const int64_t columns : {4, 1025}) {
        const HostTensor shape = emptyTensor(dtype, {kLargeRows, columns});
        // The largest values of the rows are 1000, 0 and -1000.
        const double less[] = {0, 1, 0, 2000};
        const auto largest = [&](uint64_t i) {
          const uint64_t row = i / columns;
          return 1000 - 1000.0 * double(row);
        };
        std::vector<double> values(shape.elements());
        for (uint64_t i = 0; i < values.size(); ++i)
          values[i] = largest(i) - less[i % columns % 4];
        const HostTensor x = withValues(shape, values);
        const HostTensor y = launch({.kernel = named(isLog ? "log_softmax" : "softmax", dtype),
                                     .blocks = softmaxBlocks(kLargeRows, columns),
                                     .threads = kSoftmaxThreads,
                                     .reads = {x},
                                     .writes = {shape}})[0];
        // Elements as they are stored: bf16 rounds 999 to 1000.
        std::vector<double> sums(kLargeRows);
        const auto power = [&](uint64_t i) { return std::exp(x.at(i) - largest(i)); };
        for (uint64_t i = 0; i < x.elements(); ++i)
          sums[i / columns] += power(i);
        expectNear(
            y,
            [&](uint64_t i) {
              const double sum = sums[i / columns];
              return isLog ? x.at(i) - largest(i) - std::log(sum) : power(i) / sum;
            },
            8e-6, isLog ? 1e-5 : 1e-9);
      }
}

} // namespace
} // namespace cgc::test
