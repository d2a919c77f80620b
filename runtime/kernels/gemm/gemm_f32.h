// gemm_f32_* and gemm_sgd_f32_*: launch shape and checks.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>
#include <array>

namespace cgc {

/// The rows and the columns of y that a CTA, or a split-K cluster, computes; the columns of K in a
/// step; and the steps in the ring of a warpgroup.
inline constexpr int64_t kGemmF32Tile = 64, kGemmF32Step = 32, kGemmF32Stages = 2;
inline constexpr uint32_t kGemmF32Threads = 256;
/// The CTAs that share the K of a tile: those of the rows gemm_f32_1 to gemm_f32_8.
inline constexpr std::array<int64_t, 8> kGemmF32Splits = {1, 2, 3, 4, 5, 6, 7, 8};
/// The rows of a tile that each CTA of a cluster adds up; the last one may have fewer.
constexpr int64_t gemmF32ShareRows(int64_t splitK) {
  return (kGemmF32Tile + splitK - 1) / splitK;
}
/// The rings of two warpgroups, each with the memory of one more step for the small parts;
/// and the sums of its share of a tile, and of all rows, that a CTA receives from the others, with
/// a barrier. Two CTAs fit on an SM.
inline constexpr uint32_t kGemmF32SharedBytes = [] {
  int64_t received = 0;
  for (const int64_t splitK : kGemmF32Splits)
    received = std::max(received, (splitK - 1) * (gemmF32ShareRows(splitK) + 1) * kGemmF32Tile);
  return uint32_t(2 * (kGemmF32Stages + 1) * 2 * kGemmF32Tile * kGemmF32Step + received) *
             uint32_t(sizeof(float)) +
         16;
}();

/// The tensors of a launch of gemm_f32_*.
enum GemmF32Read : size_t { kGemmF32A, kGemmF32B, kGemmF32Bias };
enum GemmF32Write : size_t { kGemmF32Y, kGemmF32Sums };
/// The tensors of a launch of gemm_sgd_f32_*. The last three are one group, as are its writes.
enum GemmSgdF32Read : size_t {
  kGemmSgdA,
  kGemmSgdB,
  kGemmSgdLr,
  kGemmSgdWeight,
  kGemmSgdBias,
  kGemmSgdSteps
};
enum GemmSgdF32Write : size_t { kGemmSgdNewWeight, kGemmSgdNewBias, kGemmSgdNewSteps };

constexpr int64_t gemmF32Tiles(int64_t extent) {
  return (extent + kGemmF32Tile - 1) / kGemmF32Tile;
}

/// A checked launch.
struct GemmF32Launch {
  /// A matrix [rows, k]: K-major, with elements side by side along k, or MN-major, along its rows.
  struct Matrix {
    int64_t stride; ///< From one such line to the next, in elements.
    bool mnMajor;
  };
  int64_t m, n, k;
  Matrix a, b;
  int64_t yStride; ///< From row to row.
};
Result<GemmF32Launch> checkGemmF32(const LaunchView &launch, int64_t splitK);
Result<GemmF32Launch> checkGemmSgdF32(const LaunchView &launch, int64_t splitK);

} // namespace cgc
