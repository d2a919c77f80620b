// Encodes tensor maps with the driver's cuTensorMapEncodeTiled.
#include "runtime/kernels/sm90/tensor_map.h"

#include "runtime/kernels/kernel_checks.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <algorithm>

namespace cgc {

namespace {

/// Encodes a map with boxes of 64 columns and `boxRows` rows. Sizes and strides are innermost
/// first; columns are dense. The checks are the limits of cuTensorMapEncodeTiled.
Result<CUtensorMap> encode(const void *data, DType dtype, std::span<const cuuint64_t> sizes,
                           std::span<const cuuint64_t> byteStrides, uint32_t boxRows,
                           bool onlyChecks) {
  const auto isAligned = [](cuuint64_t address) { return address % 16 == 0; };
  if (!isAligned(reinterpret_cast<uintptr_t>(data)) || boxRows > 256 ||
      std::ranges::any_of(sizes, [](cuuint64_t n) { return n == 0 || n > UINT64_C(1) << 32; }) ||
      std::ranges::any_of(byteStrides, [&](cuuint64_t n) {
        return n == 0 || n >= UINT64_C(1) << 40 || !isAligned(n);
      }))
    return refuseArguments(
        "tensor copies need rows at multiples of 16 bytes that are not repeated");
  if (onlyChecks)
    return CUtensorMap{};
  // The CUDA runtime provides the entry point, so that nothing links libcuda.
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                       cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return Status(Code::Device, "the driver has no tensor maps: it is older than CUDA 12");
  CUtensorMap map;
  const cuuint32_t box[] = {64, boxRows, 1, 1}, steps[] = {1, 1, 1, 1};
  const CUresult result = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      &map,
      dtype == DType::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      cuuint32_t(sizes.size()), const_cast<void *>(data), sizes.data(), byteStrides.data(), box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return Status(Code::Device,
                  "cannot describe a matrix to the GPU (error " + std::to_string(result) + ")");
  return map;
}

} // namespace

Result<CUtensorMap> tileMap(const void *data, DType dtype, int64_t rows, int64_t columns,
                            int64_t rowStride, uint32_t boxRows, bool onlyChecks) {
  const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)};
  const cuuint64_t strides[] = {cuuint64_t(rowStride) * 2};
  return encode(data, dtype, sizes, strides, boxRows, onlyChecks);
}

Result<CUtensorMap> headsMap(const void *data, DType dtype, const std::array<int64_t, 3> &sizes,
                             const std::array<int64_t, 3> &strides, uint32_t boxRows,
                             bool onlyChecks) {
  const cuuint64_t all[] = {64, cuuint64_t(sizes[2]), cuuint64_t(sizes[1]), cuuint64_t(sizes[0])};
  cuuint64_t bytes[3];
  for (int i = 0; i < 3; ++i) // The stride of a dimension of size 1 is arbitrary.
    bytes[i] = sizes[2 - i] == 1 ? 128 : cuuint64_t(strides[2 - i]) * 2;
  return encode(data, dtype, all, bytes, boxRows, onlyChecks);
}

} // namespace cgc
