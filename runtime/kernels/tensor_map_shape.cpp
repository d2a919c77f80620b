// Shapes of tensor maps and the limits of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#include "runtime/kernels/tensor_map_shape.h"

#include <algorithm>

namespace cgc {
namespace {

bool fitsSize(uint64_t size) {
  return size != 0 && size <= UINT64_C(1) << 32;
}

bool fitsStride(uint64_t stride) {
  return stride != 0 && stride < UINT64_C(1) << 40 && stride % 16 == 0;
}

} // namespace

TensorMapShape tileMapShape(int64_t rows, int64_t columns, int64_t rowStride, uint32_t boxRows) {
  return {.rank = 2,
          .sizes = {uint64_t(columns), uint64_t(rows)},
          .byteStrides = {uint64_t(rowStride) * 2},
          .boxRows = boxRows};
}

TensorMapShape headsMapShape(const std::array<int64_t, 3> &sizes,
                             const std::array<int64_t, 3> &strides, uint32_t boxRows) {
  TensorMapShape shape{.rank = 4,
                       .sizes = {64, uint64_t(sizes[2]), uint64_t(sizes[1]), uint64_t(sizes[0])},
                       .byteStrides = {},
                       .boxRows = boxRows};
  for (int i = 0; i < 3; ++i) // The stride of a dimension of size 1 is arbitrary.
    shape.byteStrides[i] = sizes[2 - i] == 1 ? 128 : uint64_t(strides[2 - i]) * 2;
  return shape;
}

Status checkTensorMap(const TensorMapShape &shape, uint64_t alignment) {
  if (alignment % 16 == 0 && shape.boxRows <= 256 &&
      std::all_of(shape.sizes.begin(), shape.sizes.begin() + shape.rank, fitsSize) &&
      std::all_of(shape.byteStrides.begin(), shape.byteStrides.begin() + shape.rank - 1,
                  fitsStride))
    return Status::ok();
  return {Code::InvalidFile,
          "tensor copies need rows at multiples of 16 bytes that are not repeated"};
}

Status checkImageMap(const ImageMapShape &shape, const std::array<int64_t, 2> &reach,
                     uint64_t alignment) {
  if (alignment % 16 != 0 || !std::ranges::all_of(shape.sizes, fitsSize) ||
      !std::ranges::all_of(shape.byteStrides, fitsStride))
    return {Code::InvalidFile, "copies of images need pixels at multiples of 16 bytes"};
  const auto fitsCorner = [](int corner) { return corner >= -128 && corner <= 127; };
  if (!std::ranges::all_of(shape.lowerCorner, fitsCorner) ||
      !std::ranges::all_of(shape.upperCorner, fitsCorner) ||
      !std::ranges::all_of(reach, [](int64_t pixels) { return pixels >= 0 && pixels <= 255; }) ||
      !std::ranges::all_of(shape.steps, [](uint32_t step) { return step >= 1 && step <= 8; }) ||
      shape.boxPixels > 256)
    return {Code::InvalidFile,
            "copies of images need windows of up to 256 pixels, strides of up to "
            "8, and padding and borders of up to 127"};
  return Status::ok();
}

} // namespace cgc
