// Encodes tensor maps with the driver's cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#include "runtime/kernels/device/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <string>

namespace cgc {

namespace {

/// The driver's function, which the CUDA runtime provides, so that nothing links libcuda. Device if
/// the driver has none.
template <class F> Result<F> encoder(const char *name) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return Status(Code::Device, "the driver has no tensor maps: it is older than CUDA 12");
  return reinterpret_cast<F>(function);
}

CUtensorMapDataType typeOf(DType dtype) {
  return dtype == DType::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

Status failedToDescribe(const char *what, CUresult result) {
  return {Code::Device, std::string("cannot describe ") + what + " to the GPU (error " +
                            std::to_string(result) + ")"};
}

} // namespace

Result<CUtensorMap> tensorMap(const void *data, DType dtype, const TensorMapShape &shape) {
  CGC_ASSIGN_OR_RETURN(const auto encode,
                       encoder<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled"));
  CUtensorMap map;
  const cuuint32_t box[] = {64, shape.boxRows, 1, 1}, steps[] = {1, 1, 1, 1};
  const CUresult result =
      encode(&map, typeOf(dtype), shape.rank, const_cast<void *>(data), shape.sizes.data(),
             shape.byteStrides.data(), box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return failedToDescribe("a matrix", result);
  return map;
}

Result<CUtensorMap> imageMap(const void *data, DType dtype, const ImageMapShape &shape) {
  CGC_ASSIGN_OR_RETURN(const auto encode,
                       encoder<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col"));
  CUtensorMap map;
  const cuuint32_t steps[] = {1, shape.steps[0], shape.steps[1], 1};
  const CUresult result =
      encode(&map, typeOf(dtype), 4, const_cast<void *>(data), shape.sizes.data(),
             shape.byteStrides.data(), shape.lowerCorner.data(), shape.upperCorner.data(), 64,
             shape.boxPixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return failedToDescribe("images", result);
  return map;
}

} // namespace cgc
