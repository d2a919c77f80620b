// gemm_f32_*: launch shape and check.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <array>

namespace cgc {

/// Rows and columns of y that a CTA, or a split-K cluster, computes; its columns of K at a time,
/// and the steps of that size in shared memory.
inline constexpr int64_t kGemmF32Tile = 64, kGemmF32Step = 32, kGemmF32Stages = 4;
inline constexpr uint32_t kGemmF32Threads = 256;
/// Groups of warps, each with all of the tile for a share of a step.
inline constexpr int64_t kGemmF32Groups = 2;
/// The distance of the rows of a group's sums, in elements.
inline constexpr int64_t kGemmF32PartialRow = kGemmF32Tile + 8;
/// The steps of both operands, the tile's sums that the CTAs of a cluster send to each other, and
/// those of its rows from up to 8 CTAs.
inline constexpr uint32_t kGemmF32SharedBytes = (kGemmF32Stages * 2 * kGemmF32Tile * kGemmF32Step +
                                                 kGemmF32Tile * kGemmF32Tile + 8 * kGemmF32Tile) *
                                                sizeof(float);
/// The CTAs that share the K of a tile: those of the rows gemm_f32_1 to gemm_f32_8.
inline constexpr std::array<int64_t, 4> kGemmF32Splits = {1, 2, 4, 8};

/// The tensors of a launch.
enum GemmF32Read : size_t { kGemmF32A, kGemmF32B, kGemmF32Bias };
enum GemmF32Write : size_t { kGemmF32Y, kGemmF32Sums };

constexpr int64_t gemmF32Tiles(int64_t extent) {
  return (extent + kGemmF32Tile - 1) / kGemmF32Tile;
}

/// A checked launch.
struct GemmF32Launch {
  /// A matrix [rows, k] whose elements lie side by side along k or along its rows.
  struct Matrix {
    int64_t stride; ///< From one such line to the next, in elements.
    bool alongRows;
  };
  int64_t m, n, k;
  Matrix a, b;
  int64_t yStride; ///< From row to row.
};
Result<GemmF32Launch> checkGemmF32(const LaunchView &launch, int64_t splitK);

} // namespace cgc
