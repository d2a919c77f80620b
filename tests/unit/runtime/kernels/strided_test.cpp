// StridedLayout: the width of a unit, merged dimensions, refusals; and numbers as elements. Needs
// no GPU.
#include "runtime/kernels/pointwise/strided.h"

#include "runtime/kernels/device/element_bits.h"
#include "tests/unit/runtime/kernels/check_launch.h"

#include <cmath>
#include <cstring>

namespace cgc::test {
namespace {

using Sizes = std::vector<int64_t>;

Result<StridedLayout> layoutOf(const std::vector<Tensor> &tensors, int64_t width) {
  std::vector<OperandView> views;
  for (const Tensor &tensor : tensors)
    views.push_back(tensor.view());
  std::vector<const OperandView *> operands;
  for (const OperandView &view : views)
    operands.push_back(&view);
  return stridedLayout(operands, width);
}

/// The layout of f16 operands, with units of up to 8 elements.
StridedLayout layout(const std::vector<Tensor> &tensors) {
  Result<StridedLayout> layout = layoutOf(tensors, 8);
  EXPECT_TRUE(layout.isOk()) << layout.status().message();
  return layout.isOk() ? *layout : StridedLayout{};
}

Sizes sizes(const StridedLayout &layout) {
  Sizes result;
  for (int d = 0; d < layout.rank; ++d)
    result.push_back(layout.sizes[d].divisor);
  return result;
}
Sizes strides(const StridedLayout &layout, int operand) {
  return {layout.strides[operand], layout.strides[operand] + layout.rank};
}

const Tensor kDense = {kAddress, {4, 6, 16}};

TEST(StridedWidth, IsFullWhereUnitsLieTogether) {
  EXPECT_EQ(layout({kDense, kDense}).width, 8);
  EXPECT_EQ(layout({kDense, kDense}).units, 4u * 6 * 16 / 8);
  // Rows with gaps between them, and one element broadcast to a row.
  EXPECT_EQ(layout({kDense, {kAddress, {4, 6, 16}, {192, 24, 1}}}).width, 8);
  EXPECT_EQ(layout({kDense, {kAddress + 2, {6, 1}, {3, 1}}}).width, 8);
  EXPECT_EQ(layout({kDense, {}}).width, 8);
  EXPECT_EQ(layout({{kAddress, {8}}}).width, 8);
}

TEST(StridedWidth, DependsOnTheAddressOfEveryOperand) {
  for (int k = 0; k < 3; ++k)
    for (const uintptr_t bytes : {2, 4, 8}) {
      std::vector<Tensor> tensors(3, kDense);
      tensors[k].address += bytes;
      EXPECT_EQ(layout(tensors).width, 1) << k << ", " << bytes;
      tensors[k].address = kAddress + 16;
      EXPECT_EQ(layout(tensors).width, 8) << k;
    }
  // Alignment is in bytes of the operand: 8 bools with 8 elements of f16.
  Tensor bools = {kAddress + 8, {4, 6, 16}, {}, DType::Bool};
  EXPECT_EQ(layout({kDense, bools}).width, 8);
  bools.address -= 4;
  EXPECT_EQ(layout({kDense, bools}).width, 1);
}

TEST(StridedWidth, DependsOnTheInnermostStride) {
  for (int k = 0; k < 2; ++k) {
    std::vector<Tensor> tensors(2, kDense);
    tensors[k].strides = {192, 32, 2};
    EXPECT_EQ(layout(tensors).width, 1) << k;
    tensors[k].strides = {16, 64, -1};
    EXPECT_EQ(layout(tensors).width, 1) << k;
  }
  EXPECT_EQ(layout({{kAddress, {4, 6, 16}, {6, 1, 0}}, kDense}).width, 1); // The result.
}

TEST(StridedWidth, DependsOnTheOuterStrides) {
  for (int k = 0; k < 2; ++k)
    for (const Sizes &bad : {Sizes{192, 20, 1}, Sizes{100, 16, 1}, Sizes{192, 17, 1}}) {
      std::vector<Tensor> tensors(2, kDense);
      tensors[k].strides = bad;
      EXPECT_EQ(layout(tensors).width, 1) << k << ", " << bad[0] << ", " << bad[1];
    }
  // The stride of a dimension of size 1 is arbitrary.
  EXPECT_EQ(layout({{kAddress, {1, 6, 16}, {3, 24, 1}}, {kAddress, {6, 16}}}).width, 8);
}

TEST(StridedWidth, DependsOnTheInnermostSize) {
  const auto rows = [](int64_t columns) { return Tensor{kAddress, {6, columns}, {24, 1}}; };
  EXPECT_EQ(layout({rows(16)}).width, 8);
  for (const int64_t columns : {1, 4, 12, 15})
    EXPECT_EQ(layout({rows(columns)}).width, 1) << columns;
  // Dense rows merge.
  EXPECT_EQ(layout({{kAddress, {6, 4}}}).width, 8);
  EXPECT_EQ(layoutOf({kDense}, 1)->width, 1);
}

TEST(StridedLayout, MergesWhatAllOperandsAllow) {
  StridedLayout merged = layout({kDense, kDense});
  EXPECT_EQ(sizes(merged), Sizes{48});
  EXPECT_EQ(strides(merged, 1), Sizes{8});

  // An operand with gaps after each row, and one with gaps after each matrix.
  merged = layout({kDense, {kAddress, {4, 6, 16}, {144, 24, 1}}});
  EXPECT_EQ(sizes(merged), (Sizes{2, 24}));
  EXPECT_EQ(strides(merged, 0), (Sizes{8, 16}));
  EXPECT_EQ(strides(merged, 1), (Sizes{8, 24}));
  merged = layout({kDense, {kAddress, {4, 6, 16}, {200, 16, 1}}});
  EXPECT_EQ(sizes(merged), (Sizes{12, 4}));
  EXPECT_EQ(strides(merged, 1), (Sizes{8, 200}));

  // Units of one element; dimensions of size 1 disappear.
  merged = layout({{kAddress, {3, 1, 5}, {5, 7, 1}}, {kAddress, {3, 1, 5}, {1, 7, 3}}});
  EXPECT_EQ(merged.width, 1);
  EXPECT_EQ(merged.units, 15u);
  EXPECT_EQ(sizes(merged), (Sizes{5, 3}));
  EXPECT_EQ(strides(merged, 0), (Sizes{1, 5}));
  EXPECT_EQ(strides(merged, 1), (Sizes{3, 1}));

  for (const Sizes &one : {Sizes{}, Sizes{1}, Sizes{1, 1}}) {
    merged = layout({{kAddress, one}, {kAddress, one}});
    EXPECT_EQ(merged.units, 1u);
    EXPECT_EQ(sizes(merged), Sizes{1});
  }
}

TEST(StridedLayout, BroadcastsWithStridesOfZero) {
  const StridedLayout all =
      layout({kDense, {kAddress, {16}}, {kAddress, {6, 1}}, {kAddress, {4, 1, 1}}});
  EXPECT_EQ(all.width, 8);
  EXPECT_EQ(sizes(all), (Sizes{2, 6, 4}));
  EXPECT_EQ(strides(all, 0), (Sizes{8, 16, 96}));
  EXPECT_EQ(strides(all, 1), (Sizes{8, 0, 0}));
  EXPECT_EQ(strides(all, 2), (Sizes{0, 1, 0}));
  EXPECT_EQ(strides(all, 3), (Sizes{0, 0, 1}));
  // An absent operand has strides of 0, whatever its sizes.
  const StridedLayout absent = layout({kDense, {0, {4, 6, 16}}, {kAddress, {}}});
  EXPECT_EQ(sizes(absent), Sizes{48});
  EXPECT_EQ(strides(absent, 1), Sizes{0});
  EXPECT_EQ(strides(absent, 2), Sizes{0});
}

TEST(StridedLayout, RefusesWhatItCannotWalk) {
  const auto refused = [](const std::vector<Tensor> &tensors, const std::string &why) {
    const Status status = layoutOf(tensors, 8).status();
    EXPECT_EQ(status.code(), Code::InvalidFile);
    EXPECT_THAT(status.message(), testing::HasSubstr(why));
  };
  const std::string shape = "does not broadcast", most = "between 1 and 2^31 - 1 elements";
  refused({kDense, {kAddress, {4, 6, 15}}}, shape);
  refused({kDense, {kAddress, {4, 16}}}, shape);
  refused({{kAddress, {4, 1, 16}}, kDense}, shape);
  refused({kDense, {kAddress, {1, 4, 6, 16}}}, "more dimensions than the result");
  refused({{kAddress, {4, 0, 16}}}, most);
  refused({{kAddress, {INT64_C(1) << 31}}}, most);
  refused({{kAddress, {INT64_C(1) << 40, INT64_C(1) << 40}}}, most);
  EXPECT_EQ(layout({{kAddress, {INT32_MAX}}}).units, uint32_t(INT32_MAX));

  // Dimensions with gaps between them.
  const auto gaps = [](int rank) {
    Tensor tensor = {kAddress, Sizes(rank, 2), Sizes(rank)};
    for (int d = 0; d < rank; ++d)
      tensor.strides[rank - 1 - d] = int64_t(std::pow(3, d));
    return tensor;
  };
  EXPECT_EQ(layout({gaps(6)}).rank, 6);
  refused({gaps(7)}, "cannot be merged to 6 dimensions");
}

template <class T> std::optional<T> as(DType dtype, double number) {
  if (!represents(dtype, number))
    return std::nullopt;
  const ElementBits bits = elementBits(dtype, number);
  EXPECT_EQ(sizeof(T), dtypeSize(dtype));
  EXPECT_TRUE(sizeof(T) == 8 || bits >> (sizeof(T) * 8 % 64) == 0) << number;
  T element;
  std::memcpy(&element, &bits, sizeof(element));
  return element;
}

/// Expects that an integer dtype represents the limits of its range, nothing beyond them and no
/// fractions.
template <class T> void expectIntegers(DType dtype, double least, double most) {
  for (const double number : {least, 0.0, -0.0, 1.0, most})
    EXPECT_EQ(as<T>(dtype, number), T(number)) << dtypeName(dtype) << ", " << number;
  const double beyond = std::max(most + 1, std::nextafter(most, INFINITY)),
               below = std::min(least - 1, std::nextafter(least, -INFINITY));
  for (const double number :
       {beyond, below, 0.5, -0.5, double(INFINITY), -double(INFINITY), double(NAN)})
    EXPECT_EQ(as<T>(dtype, number), std::nullopt) << dtypeName(dtype) << ", " << number;
}

TEST(ElementBits, AreThoseOfIntegersInRange) {
  expectIntegers<int64_t>(DType::I64, -0x1p63, 0x1.fffffffffffffp62);
  expectIntegers<int32_t>(DType::I32, -0x1p31, 0x1p31 - 1);
  expectIntegers<int16_t>(DType::I16, -32768, 32767);
  expectIntegers<int8_t>(DType::I8, -128, 127);
  expectIntegers<uint8_t>(DType::U8, 0, 255);
  expectIntegers<bool>(DType::Bool, 0, 1);
}

TEST(ElementBits, AreRoundedForFloats) {
  EXPECT_EQ(as<double>(DType::F64, 0.1), 0.1);
  EXPECT_EQ(as<float>(DType::F32, 0.1), 0.1f);
  EXPECT_EQ(as<uint16_t>(DType::F16, 1), 0x3c00);
  EXPECT_EQ(as<uint16_t>(DType::F16, 0.1), 0x2e66);
  EXPECT_EQ(as<uint16_t>(DType::F16, 1e6), 0x7c00); // Infinity.
  EXPECT_EQ(as<uint16_t>(DType::F16, -INFINITY), 0xfc00);
  EXPECT_EQ(as<uint16_t>(DType::BF16, 1), 0x3f80);
  EXPECT_EQ(as<uint16_t>(DType::BF16, 0.1), 0x3dcd);
  EXPECT_TRUE(std::isnan(*as<float>(DType::F32, NAN)));
}

} // namespace
} // namespace cgc::test
