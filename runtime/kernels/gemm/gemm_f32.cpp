// Checks launches of gemm_f32_*.
#include "runtime/kernels/gemm/gemm_f32.h"

#include "runtime/kernels/kernel_checks.h"

#include <algorithm>
#include <optional>

namespace cgc {
namespace {

/// The layout of an operand [rows, k] that can be read 16 bytes at a time; nothing for others.
std::optional<GemmF32Launch::Matrix> matrixOf(const OperandView &operand, int64_t rows, int64_t k) {
  if (!operand.isPresent() || operand.dtype != DType::F32 || operand.sizes.size() != 2 ||
      operand.sizes[0] != rows || operand.sizes[1] != k || !isAligned(operand, 16))
    return std::nullopt;
  const int64_t ofRow = operand.strides.empty() ? k : operand.strides[0],
                ofColumn = operand.strides.empty() ? 1 : operand.strides[1];
  if (ofColumn == 1 && ofRow >= k && ofRow % 4 == 0 && k % 4 == 0)
    return GemmF32Launch::Matrix{ofRow, false};
  if (ofRow == 1 && ofColumn >= rows && ofColumn % 4 == 0 && rows % 4 == 0)
    return GemmF32Launch::Matrix{ofColumn, true};
  return std::nullopt;
}

} // namespace

Result<GemmF32Launch> checkGemmF32(const LaunchView &launch, int64_t splitK) {
  const int64_t m = launch.ints[0], n = launch.ints[1], k = launch.ints[2];
  constexpr int64_t kMost = int64_t(1) << 30; // Leaves room for a tile and a step in 32 bits.
  if (m <= 0 || n <= 0 || k <= 0 || m > kMost || n > kMost || k > kMost || n % 4 != 0)
    return refuseLaunch("m, n and k have to be positive and at most 2^30, n a multiple of 4");
  const std::array grid = {uint64_t(gemmF32Tiles(n) * splitK), uint64_t(gemmF32Tiles(m)),
                           uint64_t(1)};
  if (!std::ranges::equal(launch.grid, grid) || launch.block[0] != kGemmF32Threads ||
      launch.block[1] != 1 || launch.block[2] != 1 || launch.sharedBytes != kGemmF32SharedBytes)
    return refuseLaunch("the grid has to be {ceil(n / 64) split, ceil(m / 64), 1}, the block "
                        "{256, 1, 1}, with 112.5 KiB of shared memory");
  const auto a = matrixOf(launch.reads[kGemmF32A], m, k),
             b = matrixOf(launch.reads[kGemmF32B], n, k);
  if (!a || !b)
    return refuseLaunch("a has to be f32[m, k] and b f32[n, k], with rows or columns dense, of "
                        "multiples of 4 elements, and at multiples of 16 bytes");
  const OperandView &bias = launch.reads[kGemmF32Bias], &y = launch.writes[kGemmF32Y];
  if (!isAbsentOrDenseOf(bias, DType::F32, n) || !isAligned(bias, 16))
    return refuseLaunch("the bias has to be dense f32[n], at a multiple of 16 bytes");
  const auto rows = matrixOf(y, m, n);
  if (!rows || rows->alongRows)
    return refuseLaunch("y has to be f32[m, n] with dense rows at multiples of 16 bytes");
  if (!isAbsentOrDenseOf(launch.writes[kGemmF32Sums], DType::F32, m))
    return refuseLaunch("the sums have to be dense f32[m]");
  return GemmF32Launch{m, n, k, *a, *b, rows->stride};
}

CGC_KERNEL_CHECK(gemm_f32_1, checkGemmF32, 1)
CGC_KERNEL_CHECK(gemm_f32_2, checkGemmF32, 2)
CGC_KERNEL_CHECK(gemm_f32_3, checkGemmF32, 3)
CGC_KERNEL_CHECK(gemm_f32_4, checkGemmF32, 4)
CGC_KERNEL_CHECK(gemm_f32_5, checkGemmF32, 5)
CGC_KERNEL_CHECK(gemm_f32_6, checkGemmF32, 6)
CGC_KERNEL_CHECK(gemm_f32_7, checkGemmF32, 7)
CGC_KERNEL_CHECK(gemm_f32_8, checkGemmF32, 8)

} // namespace cgc
