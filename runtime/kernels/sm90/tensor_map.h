// Tensor maps: descriptors of matrices and heads for TMA (Tensor Memory Accelerator) copies.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <cuda.h>

#include <array>

namespace cgc {

/// The map of a matrix [rows, columns] of 16-bit floats, for boxes of `boxRows` rows and 64 columns
/// in the 128-byte swizzle. TMA fills elements outside the matrix with zeros. `rowStride` is in
/// elements. With `onlyChecks` the map is empty. InvalidFile if no map can describe the matrix,
/// Device if the driver has no tensor maps.
Result<CUtensorMap> tileMap(const void *data, DType dtype, int64_t rows, int64_t columns,
                            int64_t rowStride, uint32_t boxRows, bool onlyChecks);

/// The map of heads of 64 columns, for boxes of `boxRows` rows of one head. The tensor is [batch,
/// heads, rows, 64]; `sizes` and `strides` (in elements) are those of its first three dimensions.
/// Options and errors are those of tileMap().
Result<CUtensorMap> headsMap(const void *data, DType dtype, const std::array<int64_t, 3> &sizes,
                             const std::array<int64_t, 3> &strides, uint32_t boxRows,
                             bool onlyChecks);

} // namespace cgc
