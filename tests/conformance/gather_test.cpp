// gather, scatter_add and embedding_backward against double precision: indices of all kinds that
// repeat, lie outside the tensor, and leave elements out.
#include "runtime/kernels/rowwise/embedding_backward.h"
#include "runtime/kernels/rowwise/gather.h"
#include "tests/conformance/kernel_fixture.h"

#include <algorithm>

namespace cgc::test {
namespace {

/// Indices that repeat, some of them outside [0, bound), in no order.
HostTensor indices(DType dtype, const std::vector<int64_t> &sizes, int64_t bound) {
  const HostTensor tensor = emptyTensor(dtype, sizes);
  std::vector<double> values(tensor.elements());
  for (uint64_t i = 0; i < values.size(); ++i)
    values[i] = double(int64_t(i * 2654435761u >> 7) % (bound + 3) - 1);
  return withValues(tensor, values);
}
/// The element that an index selects: the first or last one for an index outside.
int64_t clamped(const HostTensor &indices, uint64_t i, int64_t bound) {
  return std::clamp<int64_t>(int64_t(indices.at(i)), 0, bound - 1);
}

class Gathers : public KernelTest {};
CGC_ON_ALL_EXECUTORS(Gathers);

struct Around {
  int64_t outer, n, k, inner;
};
constexpr Around kAround[] = {{1, 1, 1, 1},  {1, 7, 1, 1},   {64, 64, 1, 1},  {3, 5, 9, 7},
                              {2, 9, 5, 32}, {1, 3, 2, 771}, {700, 11, 3, 41}};

TEST_P(Gathers, PickElements) {
  for (int d = 0; d < kNumDTypes; ++d)
    for (const DType indexType : {DType::I64, DType::I32})
      for (const Around &s : kAround) {
        const auto dtype = DType(d);
        SCOPED_TRACE(dtypeName(dtype));
        std::vector<double> values(s.outer * s.n * s.inner);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = double(dtype == DType::Bool ? i % 2 : i % 101);
        const HostTensor x = withValues(emptyTensor(dtype, {s.outer, s.n, s.inner}), values),
                         index = indices(indexType, {s.outer, s.k, s.inner}, s.n),
                         y = emptyTensor(dtype, {s.outer, s.k, s.inner});
        expectEqual(launch({.kernel = "gather",
                            .blocks = gatherBlocks(y.elements()),
                            .threads = kGatherThreads,
                            .reads = {x, index},
                            .writes = {y}})[0],
                    [&](uint64_t i) {
                      const int64_t outer = i / (s.k * s.inner);
                      return x.at((outer * s.n + clamped(index, i, s.n)) * s.inner + i % s.inner);
                    });
      }
}

/// Each CTA has many elements.
TEST_P(Gathers, LoopOverAGridOfAnySize) {
  const HostTensor x = withRandom(emptyTensor(DType::F32, {3, 5, 1000}), 1),
                   index = indices(DType::I64, {3, 4, 1000}, 5),
                   y = emptyTensor(DType::F32, {3, 4, 1000});
  expectEqual(
      launch({.kernel = "gather",
              .blocks = 2,
              .threads = kGatherThreads,
              .reads = {x, index},
              .writes = {y}})[0],
      [&](uint64_t i) { return x.at((i / 4000 * 5 + clamped(index, i, 5)) * 1000 + i % 1000); });
}

TEST_P(Gathers, AddUpInScatterAdd) {
  for (const DType dtype : kFloats)
    for (const DType indexType : {DType::I64, DType::I32})
      for (const Around &s : kAround) {
        const HostTensor x = withRandom(emptyTensor(dtype, {s.outer, s.n, s.inner}), 1),
                         index = indices(indexType, {s.outer, s.k, s.inner}, s.n),
                         source = withRandom(emptyTensor(dtype, {s.outer, s.k, s.inner}), 2);
        std::vector<double> sums = decodeAll(dtype, x.bytes);
        for (uint64_t i = 0; i < index.elements(); ++i)
          sums[(i / (s.k * s.inner) * s.n + clamped(index, i, s.n)) * s.inner + i % s.inner] +=
              source.at(i);
        expectNear(
            launch({.kernel = named("scatter_add", dtype),
                    .blocks = gatherBlocks(x.elements()),
                    .threads = kGatherThreads,
                    .reads = {x, index, source},
                    .writes = {x}})[0],
            [&](uint64_t i) { return sums[i]; }, 1e-6, 1e-5);
      }
}

class EmbeddingBackward : public KernelTest {
protected:
  /// Launches the kernel and expects the sums in the rows of the ids. It leaves all others alone.
  void check(const HostTensor &x, const HostTensor &ids, int64_t tableRows, int64_t padding) {
    const int64_t rows = x.sizes[0], columns = x.sizes[1];
    const uint64_t slices = (columns + kEmbeddingBackwardColumns - 1) / kEmbeddingBackwardColumns;
    HostTensor untouched = emptyTensor(x.dtype, {tableRows, columns});
    std::ranges::fill(untouched.bytes, std::byte{kGuardByte});
    const HostTensor y = launch({.kernel = named("embedding_backward", x.dtype),
                                 .blocks = uint64_t(rows),
                                 .threads = kEmbeddingBackwardThreads,
                                 .reads = {x, ids},
                                 .writes = {untouched},
                                 .ints = {padding},
                                 .blocksY = uint32_t(slices)})[0];
    std::vector<double> sums(y.elements()), magnitudes(y.elements());
    std::vector<bool> isWritten(tableRows);
    const std::vector<double> values = decodeAll(x.dtype, x.bytes);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t id = clamped(ids, row, tableRows);
      if (id == padding)
        continue;
      isWritten[id] = true;
      for (int64_t i = 0; i < columns; ++i) {
        sums[id * columns + i] += values[row * columns + i];
        magnitudes[id * columns + i] += std::abs(values[row * columns + i]);
      }
    }
    expectNear(
        y, [&](uint64_t i) { return isWritten[i / columns] ? sums[i] : untouched.at(i); }, 1e-6,
        1e-6 * *std::ranges::max_element(magnitudes));
  }
};
CGC_ON_ALL_EXECUTORS(EmbeddingBackward);

TEST_P(EmbeddingBackward, SumsTheRowsOfEachId) {
  for (const DType dtype : kFloats)
    for (const DType idType : {DType::I64, DType::I32})
      for (const int64_t rows : {1, 5, 77, 1024, 2500})
        for (const int64_t columns : {1, 7, 64, 128, 132, 771})
          for (const int64_t padding : {-1, 3}) {
            SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
            check(withRandom(emptyTensor(dtype, {rows, columns}), 1),
                  indices(idType, {rows}, 2 * rows / 3 + 4), 2 * rows / 3 + 4, padding);
          }
}

/// As the padding of texts.
TEST_P(EmbeddingBackward, SumsManyRowsOfOneId) {
  constexpr int64_t kCount = 5000, kColumns = 136;
  for (const DType dtype : kFloats) {
    std::vector<double> ids(kCount);
    for (int64_t i = 0; i < kCount; ++i)
      ids[i] = i % 11 == 3 ? double(i % 7) : 0;
    check(withRandom(emptyTensor(dtype, {kCount, kColumns}), 1),
          withValues(emptyTensor(DType::I64, {kCount}), ids), 9, -1);
  }
}

} // namespace
} // namespace cgc::test
