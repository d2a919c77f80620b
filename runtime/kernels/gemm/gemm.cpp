// The tables of tiles, and the check of gemm_*, gemm_norm_* and conv_*.
#include "runtime/kernels/gemm/gemm.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/kernel_id.h"

#include <climits>
#include <optional>

namespace cgc {
namespace {

#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS) {#N "x" #M "_" #SPLIT_K, N, M, SPLIT_K},
#define CGC_GEMM_PERSISTENT(M) {"128x" #M "_persistent", kPersistentTileN, M, 1, true},
constexpr GemmTile kTiles[] = {
#include "runtime/kernels/gemm/tiles.def"
#define CGC_GEMM_MMA(N, M) {#N "x" #M "_mma", N, M, 1, false, GemmForm::Plain, true},
#include "runtime/kernels/gemm/mma_tiles.def"
};
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  {#N "x" #M "_" #SPLIT_K, N, M, SPLIT_K, false, GemmForm::Norm},
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  {"128x" #M "_persistent", kPersistentTileN, M, 1, true, GemmForm::Norm},
constexpr GemmTile kNormTiles[] = {
#include "runtime/kernels/gemm/norm_tiles.def"
#define CGC_GEMM_MMA(N, M) {#N "x" #M "_mma", N, M, 1, false, GemmForm::Norm, true},
#include "runtime/kernels/gemm/mma_tiles.def"
};
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  {#N "x" #M "_" #SPLIT_K, N, M, SPLIT_K, false, GemmForm::Conv},
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  {"128x" #M "_persistent", kPersistentTileN, M, 1, true, GemmForm::Conv},
constexpr GemmTile kConvTiles[] = {
#include "runtime/kernels/gemm/conv_tiles.def"
};

/// The rows of kernels.def for a tile.
struct TileRows {
  KernelId f16, bf16;
};
#define CGC_GEMM_ROWS(FAMILY, NAME) {KernelId::FAMILY##_f16_##NAME, KernelId::FAMILY##_bf16_##NAME},
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS) CGC_GEMM_ROWS(gemm, N##x##M##_##SPLIT_K)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_ROWS(gemm, 128x##M##_persistent)
constexpr TileRows kRows[] = {
#include "runtime/kernels/gemm/tiles.def"
#define CGC_GEMM_MMA(N, M) CGC_GEMM_ROWS(gemm, N##x##M##_mma)
#include "runtime/kernels/gemm/mma_tiles.def"
};
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS) CGC_GEMM_ROWS(gemm_norm, N##x##M##_##SPLIT_K)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_ROWS(gemm_norm, 128x##M##_persistent)
constexpr TileRows kNormRows[] = {
#include "runtime/kernels/gemm/norm_tiles.def"
#define CGC_GEMM_MMA(N, M) CGC_GEMM_ROWS(gemm_norm, N##x##M##_mma)
#include "runtime/kernels/gemm/mma_tiles.def"
};
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS) CGC_GEMM_ROWS(conv, N##x##M##_##SPLIT_K)
#define CGC_GEMM_PERSISTENT(M) CGC_GEMM_ROWS(conv, 128x##M##_persistent)
constexpr TileRows kConvRows[] = {
#include "runtime/kernels/gemm/conv_tiles.def"
};
#undef CGC_GEMM_ROWS

/// The row stride, in elements, of a matrix that TMA and 16-byte accesses can use: [rows, columns]
/// of `dtype`, a 16-bit float, with dense rows at multiples of 16 bytes. Nothing for other
/// operands.
std::optional<int64_t> rowStrideOf(const OperandView &matrix, DType dtype, int64_t rows,
                                   int64_t columns) {
  if (!matrix.isPresent() || matrix.dtype != dtype || matrix.sizes.size() != 2 ||
      matrix.sizes[0] != rows || matrix.sizes[1] != columns || !isAligned(matrix, 16))
    return std::nullopt;
  if (matrix.strides.empty())
    return columns;
  if (matrix.strides[1] != 1 || matrix.strides[0] < columns || matrix.strides[0] % 8 != 0)
    return std::nullopt;
  return matrix.strides[0];
}

} // namespace

std::span<const GemmTile> gemmTiles() {
  return kTiles;
}

std::span<const GemmTile> gemmNormTiles() {
  return kNormTiles;
}

std::span<const GemmTile> convTiles() {
  return kConvTiles;
}

const Kernel &GemmKernel::row() const {
  const TileRows &rows = tile->form == GemmForm::Norm   ? kNormRows[tile - kNormTiles]
                         : tile->form == GemmForm::Conv ? kConvRows[tile - kConvTiles]
                                                        : kRows[tile - kTiles];
  return kernelOf(dtype == DType::F16 ? rows.f16 : rows.bf16);
}

std::optional<GemmKernel> gemmKernelOf(const Kernel &row) {
  for (const std::span<const GemmTile> tiles : {gemmTiles(), gemmNormTiles(), convTiles()})
    for (const GemmTile &tile : tiles)
      for (const DType dtype : {DType::F16, DType::BF16})
        if (const GemmKernel kernel{dtype, &tile}; &kernel.row() == &row)
          return kernel;
  return std::nullopt;
}

Result<GemmLaunch> checkGemm(const LaunchView &launch, DType dtype, const GemmTile &tile) {
  const auto [m, n, k, activation, gates] = GemmNumbers::of(launch.ints);
  const int64_t most = int64_t(1) << 30;
  if (m < 1 || n < 8 || k < 8 || m > most || n > most || k > most || n % 8 != 0 || k % 8 != 0)
    return refuseLaunch("N and K have to be positive multiples of 8, and M positive");
  if (activation < 0 || activation >= kNumActivations)
    return refuseLaunch("there is no such activation");
  if (!tile.takes(k))
    return refuseLaunch(
        tile.splitK > 1
            ? "K has to give each CTA of the split 64 columns or the rest"
            : "a persistent kernel normalizes rows of an even number of groups up to 32");
  const uint32_t stages = tile.stagesIn(launch.sharedBytes);
  // A persistent kernel accepts any even number of CTAs up to two for each tile of a pair; one with
  // wide clusters needs at least one cluster.
  const auto grid = tile.grid(m, n, launch.grid[0]);
  if (launch.grid[0] == 0 || !std::ranges::equal(launch.grid, grid) ||
      launch.block[0] != tile.threads() || launch.block[1] != 1 || launch.block[2] != 1 ||
      stages < 2 || (tile.mma && launch.sharedBytes > kMmaMaxSharedBytes))
    return refuseLaunch("grid, block or shared memory does not match the tile");

  const OperandView &x = launch.reads[kGemmX], &w = launch.reads[kGemmW],
                    &bias = launch.reads[kGemmBias], &y = launch.writes[kGemmY],
                    &yStatistics = launch.writes[kGemmYStatistics];
  const bool normalizes = tile.form == GemmForm::Norm, isConv = tile.form == GemmForm::Conv;
  const OperandView residual = normalizes ? OperandView() : launch.reads[kGemmResidual];
  const auto xStride = isConv ? k : rowStrideOf(x, dtype, m, k),
             wStride = isConv ? k : rowStrideOf(w, dtype, n, k),
             yStride = rowStrideOf(y, dtype, m, n);
  const auto residualStride =
      residual.isPresent() ? rowStrideOf(residual, dtype, m, n) : std::optional<int64_t>(0);
  if (!xStride || !wStride || !yStride || !residualStride)
    return refuseLaunch("x [M,K], w [N,K], residual and y [M,N] need dense rows at multiples of "
                        "16 bytes");
  if (gates < 0 || gates > 1 ||
      (gates == 1 && (tile.form != GemmForm::Plain || !residual.isPresent())))
    return refuseLaunch("a gate has to be the residual of gemm");
  if (!isAbsentOrDenseOf(bias, dtype, n) || !isAligned(bias, 16))
    return refuseLaunch("bias has to be dense, with one element for each column of y");
  if (yStatistics.isPresent() && !isRowStatisticsOf(yStatistics, m, n))
    return refuseLaunch("row statistics have to be dense, two f32 for each 64 columns of a row");
  if (normalizes && (!isRowStatisticsOf(launch.reads[kGemmXStatistics], m, k) ||
                     !isAligned(launch.reads[kGemmXStatistics], 16)))
    return refuseLaunch("row statistics have to be dense, at a multiple of 16 bytes, two f32 for "
                        "each 64 columns of a row");

  GemmLaunch checked{.m = m,
                     .n = n,
                     .k = k,
                     .stages = stages,
                     .activation = Activation(activation),
                     .gates = gates == 1,
                     .xStride = *xStride,
                     .wStride = *wStride,
                     .residualStride = *residualStride,
                     .yStride = *yStride,
                     .w = {},
                     .x = {},
                     .image = {},
                     .y = {},
                     .residual = {}};
  if (tile.mma) {
    constexpr uint32_t kMaxGridY = 65535; // CUDA C++ Programming Guide, Compute Capabilities.
    if (grid[1] > kMaxGridY)
      return refuseLaunch("there are too many tiles");
    return checked;
  }
  checked.w = tileMapShape(n, k, *wStride, tile.wBoxRows());
  checked.x = tileMapShape(m, k, *xStride, tile.xBoxRows());
  if (isConv) {
    CGC_TRY(checkConvOperands(launch, dtype, tile, checked));
  } else {
    CGC_TRY(checkTensorMap(checked.x, x.alignment));
  }
  CGC_TRY(checkTensorMap(checked.w, w.alignment));
  if (!tile.persistent)
    return checked;
  checked.y = tileMapShape(m, n, *yStride, tile.boxM());
  CGC_TRY(checkTensorMap(checked.y, y.alignment));
  if (residual.isPresent()) {
    checked.residual = tileMapShape(m, n, *residualStride, tile.boxM());
    CGC_TRY(checkTensorMap(checked.residual, residual.alignment));
  }
  const auto [tilesM, tilesN] = tile.tilesOfPairs(m, n);
  if (tilesM * tilesN > INT_MAX)
    return refuseLaunch("there are too many tiles");
  return checked;
}

/// The checks of the f16 and the bf16 kernel of a tile.
#define CGC_GEMM_CHECKS(FAMILY, NAME, ...)                                                         \
  CGC_KERNEL_CHECK(FAMILY##_f16_##NAME, checkGemm, DType::F16, {"", __VA_ARGS__})                  \
  CGC_KERNEL_CHECK(FAMILY##_bf16_##NAME, checkGemm, DType::BF16, {"", __VA_ARGS__})
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_GEMM_CHECKS(gemm, N##x##M##_##SPLIT_K, N, M, SPLIT_K, false, GemmForm::Plain)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_GEMM_CHECKS(gemm, 128x##M##_persistent, kPersistentTileN, M, 1, true, GemmForm::Plain)
#include "runtime/kernels/gemm/tiles.def"
#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_GEMM_CHECKS(gemm, N##x##M##_mma, N, M, 1, false, GemmForm::Plain, true)
#include "runtime/kernels/gemm/mma_tiles.def"
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_GEMM_CHECKS(gemm_norm, N##x##M##_##SPLIT_K, N, M, SPLIT_K, false, GemmForm::Norm)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_GEMM_CHECKS(gemm_norm, 128x##M##_persistent, kPersistentTileN, M, 1, true, GemmForm::Norm)
#include "runtime/kernels/gemm/norm_tiles.def"
#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_GEMM_CHECKS(gemm_norm, N##x##M##_mma, N, M, 1, false, GemmForm::Norm, true)
#include "runtime/kernels/gemm/mma_tiles.def"
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_GEMM_CHECKS(conv, N##x##M##_##SPLIT_K, N, M, SPLIT_K, false, GemmForm::Conv)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_GEMM_CHECKS(conv, 128x##M##_persistent, kPersistentTileN, M, 1, true, GemmForm::Conv)
#include "runtime/kernels/gemm/conv_tiles.def"
#undef CGC_GEMM_CHECKS

} // namespace cgc
