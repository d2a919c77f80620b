// Tensor maps: descriptors of matrices, heads and images for TMA copies.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/kernels/tensor_map_shape.h"

#include <cuda.h>

namespace cgc {

/// The map of the tensor of `dtype`, f16 or bf16, at `data`. checkTensorMap() has accepted the
/// shape and the alignment of `data`. Device if the driver has no tensor maps.
Result<CUtensorMap> tensorMap(const void *data, DType dtype, const TensorMapShape &shape);
/// Likewise of images, after checkImageMap().
Result<CUtensorMap> imageMap(const void *data, DType dtype, const ImageMapShape &shape);

} // namespace cgc
