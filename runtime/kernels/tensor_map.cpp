// Tensor maps, by the driver function that encodes them.
#include "runtime/kernels/tensor_map.h"

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>

namespace cgc {

Result<CUtensorMap> tileMap(const void *data, DType dtype, int64_t rows, int64_t columns,
                            int64_t rowStride, uint32_t boxRows) {
  // Asked of the runtime, so that nothing links libcuda.
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                       cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return Status(Code::Device, "the driver has no tensor maps: it is older than CUDA 12");
  CUtensorMap map;
  const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
  const cuuint64_t strides[] = {cuuint64_t(rowStride) * 2};
  const cuuint32_t box[] = {64, boxRows}, steps[] = {1, 1};
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      &map,
      dtype == DType::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
      const_cast<void *>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return Status(Code::Device,
                  "cannot describe a matrix to the GPU (error " + std::to_string(result) + ")");
  return map;
}

} // namespace cgc
