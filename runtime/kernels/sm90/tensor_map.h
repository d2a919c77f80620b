// Tensor maps: how a Hopper tensor copy finds a tile of a matrix.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <cuda.h>

#include <array>

namespace cgc {

/// A map of a matrix of 16-bit floats by which tiles of `boxRows` rows and 64 columns are copied to
/// shared memory, swizzled by 128 bytes; what lies outside is zero. `rowStride` in elements. With
/// `onlyChecks` the map is empty. InvalidFile if no map can describe this, Device if the driver has
/// no tensor maps.
Result<CUtensorMap> tileMap(const void *data, DType dtype, int64_t rows, int64_t columns,
                            int64_t rowStride, uint32_t boxRows, bool onlyChecks);

/// The same of heads of 64 columns: a tensor [batch, heads, rows, 64] with these strides in
/// elements, from which tiles of `boxRows` rows of one head are copied.
Result<CUtensorMap> headsMap(const void *data, DType dtype, const std::array<int64_t, 3> &sizes,
                             const std::array<int64_t, 3> &strides, uint32_t boxRows,
                             bool onlyChecks);

} // namespace cgc
