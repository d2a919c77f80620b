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

/// InvalidFile if the shape at an address of this alignment exceeds the limits of
/// cuTensorMapEncodeTiled (CUDA Driver API, Tensor Map Object Management).
Status checkTensorMap(const TensorMapShape &shape, uint64_t alignment);

} // namespace cgc
