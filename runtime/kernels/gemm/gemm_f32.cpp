// Checks launches of gemm_f32_* and gemm_sgd_f32_*.
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

/// The launch of y = a b^T.
Result<GemmF32Launch> checkProduct(const LaunchView &launch, int64_t splitK, const OperandView &a,
                                   const OperandView &b, const OperandView &y) {
  const int64_t m = launch.ints[0], n = launch.ints[1], k = launch.ints[2];
  constexpr int64_t kMost = int64_t(1) << 30; // Leaves room for a tile and a step in 32 bits.
  if (m <= 0 || n <= 0 || k <= 0 || m > kMost || n > kMost || k > kMost || n % 4 != 0)
    return refuseLaunch("m, n and k have to be positive and at most 2^30, n a multiple of 4");
  const std::array grid = {uint64_t(gemmF32Tiles(n) * splitK), uint64_t(gemmF32Tiles(m)),
                           uint64_t(1)};
  if (!std::ranges::equal(launch.grid, grid) || launch.block[0] != kGemmF32Threads ||
      launch.block[1] != 1 || launch.block[2] != 1 || launch.sharedBytes != kGemmF32SharedBytes)
    return refuseLaunch("the grid has to be {ceil(n / 64) split, ceil(m / 64), 1}, the block "
                        "{256, 1, 1}, with " +
                        std::to_string(kGemmF32SharedBytes) + " bytes of shared memory");
  const auto matrixA = matrixOf(a, m, k), matrixB = matrixOf(b, n, k);
  if (!matrixA || !matrixB)
    return refuseLaunch("a has to be f32[m, k] and b f32[n, k], with rows or columns dense, of "
                        "multiples of 4 elements, and at multiples of 16 bytes");
  const auto rows = matrixOf(y, m, n);
  if (!rows || rows->mnMajor)
    return refuseLaunch("y has to be f32[m, n] with dense rows at multiples of 16 bytes");
  return GemmF32Launch{m, n, k, *matrixA, *matrixB, rows->stride};
}

/// Whether both tensors are absent, or dense of so many elements.
bool areAbsentOrDenseOf(const OperandView &before, const OperandView &after, DType dtype,
                        int64_t elements) {
  return before.isPresent() == after.isPresent() && isAbsentOrDenseOf(before, dtype, elements) &&
         isAbsentOrDenseOf(after, dtype, elements);
}

} // namespace

Result<GemmF32Launch> checkGemmF32(const LaunchView &launch, int64_t splitK) {
  CGC_ASSIGN_OR_RETURN(const GemmF32Launch product,
                       checkProduct(launch, splitK, launch.reads[kGemmF32A],
                                    launch.reads[kGemmF32B], launch.writes[kGemmF32Y]));
  const OperandView &bias = launch.reads[kGemmF32Bias];
  if (!isAbsentOrDenseOf(bias, DType::F32, product.n) || !isAligned(bias, 16))
    return refuseLaunch("the bias has to be dense f32[n], at a multiple of 16 bytes");
  if (!isAbsentOrDenseOf(launch.writes[kGemmF32Sums], DType::F32, product.m))
    return refuseLaunch("the sums have to be dense f32[m]");
  return product;
}

Result<GemmF32Launch> checkGemmSgdF32(const LaunchView &launch, int64_t splitK) {
  const OperandView &weight = launch.reads[kGemmSgdWeight],
                    &newWeight = launch.writes[kGemmSgdNewWeight];
  CGC_ASSIGN_OR_RETURN(
      const GemmF32Launch product,
      checkProduct(launch, splitK, launch.reads[kGemmSgdA], launch.reads[kGemmSgdB], newWeight));
  // One group, so that no other writes what this one reads.
  if (launch.reads.size() != kGemmSgdSteps + 1)
    return refuseLaunch("there has to be one group");
  if (!isDenseOf(launch.reads[kGemmSgdLr], DType::F32, 1))
    return refuseLaunch("lr has to be f32[1]");
  const int64_t elements = product.m * product.n;
  if (!isDenseOf(weight, DType::F32, elements) || !isDenseOf(newWeight, DType::F32, elements) ||
      !isAligned(weight, 16))
    return refuseLaunch("the weights have to be dense f32[m, n], at multiples of 16 bytes");
  if (!areAbsentOrDenseOf(launch.reads[kGemmSgdBias], launch.writes[kGemmSgdNewBias], DType::F32,
                          product.m))
    return refuseLaunch("the biases have to be dense f32[m]");
  if (!areAbsentOrDenseOf(launch.reads[kGemmSgdSteps], launch.writes[kGemmSgdNewSteps], DType::I64,
                          1))
    return refuseLaunch("the numbers of steps have to be i64[1]");
  return product;
}

CGC_KERNEL_CHECK(gemm_f32_1, checkGemmF32, 1)
CGC_KERNEL_CHECK(gemm_f32_2, checkGemmF32, 2)
CGC_KERNEL_CHECK(gemm_f32_3, checkGemmF32, 3)
CGC_KERNEL_CHECK(gemm_f32_4, checkGemmF32, 4)
CGC_KERNEL_CHECK(gemm_f32_5, checkGemmF32, 5)
CGC_KERNEL_CHECK(gemm_f32_6, checkGemmF32, 6)
CGC_KERNEL_CHECK(gemm_f32_7, checkGemmF32, 7)
CGC_KERNEL_CHECK(gemm_f32_8, checkGemmF32, 8)

CGC_KERNEL_CHECK(gemm_sgd_f32_1, checkGemmSgdF32, 1)
CGC_KERNEL_CHECK(gemm_sgd_f32_2, checkGemmSgdF32, 2)
CGC_KERNEL_CHECK(gemm_sgd_f32_3, checkGemmSgdF32, 3)
CGC_KERNEL_CHECK(gemm_sgd_f32_4, checkGemmSgdF32, 4)
CGC_KERNEL_CHECK(gemm_sgd_f32_5, checkGemmSgdF32, 5)
CGC_KERNEL_CHECK(gemm_sgd_f32_6, checkGemmSgdF32, 6)
CGC_KERNEL_CHECK(gemm_sgd_f32_7, checkGemmSgdF32, 7)
CGC_KERNEL_CHECK(gemm_sgd_f32_8, checkGemmSgdF32, 8)

} // namespace cgc
