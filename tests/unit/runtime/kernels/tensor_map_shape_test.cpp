// Shapes of tensor maps that exceed the limits of cuTensorMapEncodeTiled are refused.
#include "runtime/kernels/tensor_map_shape.h"

#include "runtime/kernels/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

struct Tile {
  uintptr_t address = 1 << 20;
  int64_t rows = 300, columns = 520, rowStride = 528;
  uint32_t boxRows = 64;

  Status check() const {
    return checkTensorMap(tileMapShape(rows, columns, rowStride, boxRows), alignmentOf(address));
  }
};

struct Heads {
  uintptr_t address = 1 << 20;
  std::array<int64_t, 3> sizes = {2, 3, 77}, strides = {3 * 77 * 192, 64, 192};
  uint32_t boxRows = 64;

  Status check() const {
    return checkTensorMap(headsMapShape(sizes, strides, boxRows), alignmentOf(address));
  }
};

template <class T> void expectRefused(const T &map) {
  EXPECT_EQ(map.check().code(), Code::InvalidFile);
  EXPECT_THAT(map.check().message(), testing::HasSubstr("rows at multiples of 16 bytes"));
}
template <class T> void expectTaken(const T &map) {
  EXPECT_TRUE(map.check().isOk()) << map.check().message();
}

/// The largest stride in elements of 2 bytes: a multiple of 16 bytes below 2^40 bytes.
constexpr int64_t kMostStride = (int64_t(1) << 39) - 8;

TEST(TensorMap, OfATileHasLimits) {
  expectTaken(Tile());
  for (const uint32_t rows : {1, 256})
    expectTaken(Tile{.boxRows = rows});
  for (const uint32_t rows : {257, 512})
    expectRefused(Tile{.boxRows = rows});
  for (const uintptr_t bytes : {2, 8, 15})
    expectRefused(Tile{.address = (1 << 20) + bytes});
  expectTaken(Tile{.address = (1 << 20) + 16});

  const int64_t most = int64_t(1) << 32;
  for (const int64_t size : {int64_t(1), most}) {
    expectTaken(Tile{.rows = size});
    expectTaken(Tile{.columns = size});
  }
  for (const int64_t size : {int64_t(0), int64_t(-1), most + 1}) {
    expectRefused(Tile{.rows = size});
    expectRefused(Tile{.columns = size});
  }

  for (const int64_t stride : {int64_t(8), kMostStride})
    expectTaken(Tile{.rowStride = stride});
  for (const int64_t stride :
       {int64_t(0), int64_t(4), int64_t(521), int64_t(-528), kMostStride + 4, kMostStride + 8})
    expectRefused(Tile{.rowStride = stride});
}

TEST(TensorMap, OfHeadsHasLimits) {
  expectTaken(Heads());
  expectTaken(Heads{.boxRows = 256});
  expectRefused(Heads{.boxRows = 257});
  for (const uintptr_t bytes : {2, 8})
    expectRefused(Heads{.address = (1 << 20) + bytes});

  for (int d = 0; d < 3; ++d) {
    const auto ofSize = [&](int64_t size) {
      Heads heads;
      heads.sizes[d] = size;
      return heads;
    };
    const auto ofStride = [&](int64_t stride) {
      Heads heads;
      heads.strides[d] = stride;
      return heads;
    };
    const int64_t most = int64_t(1) << 32;
    expectTaken(ofSize(most));
    for (const int64_t size : {int64_t(0), int64_t(-1), most + 1})
      expectRefused(ofSize(size));
    expectTaken(ofStride(kMostStride));
    for (const int64_t stride :
         {int64_t(0), int64_t(4), int64_t(65), int64_t(-64), kMostStride + 8}) {
      expectRefused(ofStride(stride));
      // The stride of a dimension of size 1 is arbitrary.
      Heads one = ofStride(stride);
      one.sizes[d] = 1;
      expectTaken(one);
    }
  }
}

} // namespace
} // namespace cgc::test
