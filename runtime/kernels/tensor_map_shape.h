// TensorMapShape: what a tensor map describes, apart from its address, and the limits of that.
#pragma once

#include "runtime/base/status.h"

#include <array>
#include <cstdint>

namespace cgc {

/// A tensor of 16-bit floats with dense columns, as a tensor map for TMA (Tensor Memory
/// Accelerator) copies describes it. Boxes have 64 columns, in the 128-byte swizzle, and `boxRows`
/// rows. TMA fills elements outside the tensor with zeros.
struct TensorMapShape {
  uint32_t rank = 0;
  std::array<uint64_t, 4> sizes = {};       ///< Innermost first.
  std::array<uint64_t, 3> byteStrides = {}; ///< From the second innermost dimension on, in bytes.
  uint32_t boxRows = 0;
};

/// A matrix [rows, columns]. `rowStride` is in elements.
TensorMapShape tileMapShape(int64_t rows, int64_t columns, int64_t rowStride, uint32_t boxRows);

/// Heads [batch, heads, rows, 64], with boxes of rows of one head. `sizes` and `strides` (in
/// elements) are those of the first three dimensions.
TensorMapShape headsMapShape(const std::array<int64_t, 3> &sizes,
                             const std::array<int64_t, 3> &strides, uint32_t boxRows);

/// Images of 16-bit floats with dense channels, as a tensor map for TMA copies in im2col mode
/// describes them: a box has 64 channels, in the 128-byte swizzle, of the pixels at one offset in
/// `boxPixels` consecutive windows. TMA fills pixels and channels outside the images with zeros.
struct ImageMapShape {
  std::array<uint64_t, 4> sizes = {};       ///< Channels, width, height, images.
  std::array<uint64_t, 3> byteStrides = {}; ///< Of width, height and images, in bytes.
  /// The first pixel of the first window, and what is between that of the last window and the last
  /// pixel; of {width, height}.
  std::array<int, 2> lowerCorner = {}, upperCorner = {};
  std::array<uint32_t, 2> steps = {}; ///< From window to window; of {width, height}.
  uint32_t boxPixels = 0;
};

/// InvalidFile if the shape, with windows whose last pixel lies `reach` ({width, height}) behind
/// the first, at an address of this alignment exceeds the limits of cuTensorMapEncodeIm2col (CUDA
/// Driver API, Tensor Map Object Management) or of im2col copies (PTX ISA, im2col mode).
Status checkImageMap(const ImageMapShape &shape, const std::array<int64_t, 2> &reach,
                     uint64_t alignment);

/// InvalidFile if the shape at an address of this alignment exceeds the limits of
/// cuTensorMapEncodeTiled (CUDA Driver API, Tensor Map Object Management).
Status checkTensorMap(const TensorMapShape &shape, uint64_t alignment);

} // namespace cgc
