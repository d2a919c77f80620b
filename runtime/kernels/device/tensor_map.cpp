// Encodes tensor maps with the driver's cuTensorMapEncodeTiled.
#include "runtime/kernels/device/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <string>

namespace cgc {

Result<CUtensorMap> tensorMap(const void *data, DType dtype, const TensorMapShape &shape) {
  // The CUDA runtime provides the entry point, so that nothing links libcuda.
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                       cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return Status(Code::Device, "the driver has no tensor maps: it is older than CUDA 12");
  CUtensorMap map;
  const cuuint32_t box[] = {64, shape.boxRows, 1, 1}, steps[] = {1, 1, 1, 1};
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      &map,
      dtype == DType::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      shape.rank, const_cast<void *>(data), shape.sizes.data(), shape.byteStrides.data(), box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return Status(Code::Device,
                  "cannot describe a matrix to the GPU (error " + std::to_string(result) + ")");
  return map;
}

} // namespace cgc
