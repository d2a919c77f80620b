// Device and host code shared by gemm.cuh and gemm_persistent.cuh: the kernel parameter, the
// pipeline state, the mainloop, the scales that normalize rows of X, and the checks of a launch.
#pragma once

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/sm90/hopper.cuh"
#include "runtime/kernels/rowwise/row_statistics.cuh"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/sm90/tensor_map.h"
#include "runtime/kernels/sm90/wgmma.cuh"

namespace cgc {
namespace {

using namespace device;

/// Output tiles that the clusters of a persistent kernel compute in turn.
struct ClusterTiles {
  int count = 0;
  Divider ofRow;  ///< Tiles along the inner dimension (GemmParameters::mIsInner).
  int firstM = 0; ///< First row of y in these tiles.
};

template <class T> struct GemmParameters {
  CUtensorMap w, x;
  CUtensorMap yTiles, residualTiles; ///< Persistent kernels: boxes of boxM() rows, 64 columns.
  const T *bias, *residual;          ///< Null if absent.
  T *y;
  int64_t residualStride, yStride;  ///< From row to row, in elements.
  RowStatistics *yStatistics;       ///< [M, yGroups]; null if not requested.
  const RowStatistics *xStatistics; ///< [M, xGroups]; gemm_norm only, like eps and perColumn.
  float eps, perColumn;             ///< perColumn is 1 / K.
  int m, n, k, stages;
  int xGroups, yGroups; ///< statisticsGroups() of K and of N.
  Activation activation;
  /// Persistent kernels; tailTiles are those of the tail launch of pairs beside wide clusters.
  ClusterTiles tiles, tailTiles;
  /// Whether consecutive tiles lie along M: then the kernel reads X, the smaller operand, again and
  /// again and W once.
  bool mIsInner;
  /// Nothing writes w, or bias, while the plan runs.
  bool wIsConstant, biasIsConstant;
};

/// Extent of a stage in K: rows of 128 bytes.
constexpr int kTileK = kGemmTileK;

/// A thread's position in the pipeline: stage, and parity of the stage's barriers.
struct Ring {
  int stages, stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// 1 / sqrt(variance + eps) of a row of x, from the statistics of the whole row. It scales the
/// row's accumulators. The mean of the row adds nothing to them because each row of w sums to 0.
template <class T> __device__ float scaleOf(const GemmParameters<T> &p, const RowStatistics &of) {
  const float mean = of.sum * p.perColumn, variance = of.squares * p.perColumn - mean * mean;
  return rsqrtf(fmaxf(variance, 0) + p.eps);
}
/// The same scale, from the statistics of row `m` in global memory: two groups (16 bytes) for each
/// load and 8 loads in flight. An odd number of groups is loaded one at a time.
template <class T> __device__ float scaleOf(const GemmParameters<T> &p, int64_t m) {
  constexpr int kAtOnce = 8;
  const RowStatistics *const row = p.xStatistics + m * p.xGroups;
  RowStatistics all{};
  const int pairs = p.xGroups % 2 == 0 ? p.xGroups / 2 : 0;
#pragma unroll 1
  for (int first = 0; first < pairs; first += kAtOnce) {
    float4 of[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      of[i] = first + i < pairs ? reinterpret_cast<const float4 *>(row)[first + i] : float4{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      all.addTwo(of[i]);
  }
#pragma unroll 1
  for (int g = 2 * pairs; g < p.xGroups; ++g) {
    all.sum += row[g].sum;
    all.squares += row[g].squares;
  }
  return scaleOf(p, all);
}

/// The mainloop of a consumer warpgroup: accumulates over `steps` K steps, one pipeline stage each.
/// `w` and `x` describe the warpgroup's operands in stage 0. Calls `release` with each stage that
/// wgmma has read but the last one, which it returns.
template <class T, int kTileM, int kStageBytes, class F>
__device__ int mainloop(float (&accumulators)[kTileM / 2], Ring &ring, uint64_t *full, int steps,
                        uint64_t w, uint64_t x, F release) {
  int last = 0; // The stage of the previous step.
#pragma unroll 1
  for (int i = 0; i < steps; ++i, ring.next()) {
    waitBarrier(&full[ring.stage], ring.phase);
    const uint64_t wOf = descriptorAt(w, ring.stage * kStageBytes);
    const uint64_t xOf = descriptorAt(x, ring.stage * kStageBytes);
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < kTileK / 16; ++k)
      Wgmma<T, kTileM>::run(accumulators, descriptorAt(wOf, k * 32), descriptorAt(xOf, k * 32),
                            i + k > 0);
    wgmmaCommit();
    wgmmaWait<1>();
    if (i > 0)
      release(last);
    last = ring.stage;
  }
  wgmmaWait<0>();
  return last;
}

/// The row stride, in elements, of a matrix that TMA and 16-byte accesses can use: [rows, columns]
/// of `dtype`, a 16-bit float, with dense rows at multiples of 16 bytes. Nothing for other tensors.
inline std::optional<int64_t> rowStrideOf(const TensorView &matrix, DType dtype, int64_t rows,
                                          int64_t columns) {
  if (!matrix.data || matrix.dtype != dtype || matrix.sizes.size() != 2 ||
      matrix.sizes[0] != rows || matrix.sizes[1] != columns ||
      reinterpret_cast<uintptr_t>(matrix.data) % 16 != 0)
    return std::nullopt;
  if (matrix.strides.empty())
    return columns;
  if (matrix.strides[1] != 1 || matrix.strides[0] < columns || matrix.strides[0] % 8 != 0)
    return std::nullopt;
  return matrix.strides[0];
}

/// Checks a launch and builds its parameter, without the fields that only persistent kernels have.
/// TMA loads W in boxes of `wBoxRows` rows and X in boxes of `xBoxRows`. InvalidFile if the launch
/// could access memory outside its tensors.
template <class T, bool kNorm>
Result<GemmParameters<T>> gemmParameters(const KernelArguments &a, const GemmTile &tile,
                                         uint32_t wBoxRows, uint32_t xBoxRows) {
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t m = a.ints[0], n = a.ints[1], k = a.ints[2], kind = a.ints[3];
  const int64_t most = int64_t(1) << 30;
  if (m < 1 || n < 8 || k < 8 || m > most || n > most || k > most || n % 8 != 0 || k % 8 != 0)
    return refuseArguments("N and K have to be positive multiples of 8, and M positive");
  if (kind < 0 || kind >= kNumActivations)
    return refuseArguments("there is no such activation");
  if (!tile.takes(k))
    return refuseArguments(
        tile.splitK > 1
            ? "K has to give each CTA of the split 64 columns or the rest"
            : "a persistent kernel normalizes rows of an even number of groups up to 32");
  const uint32_t stages = tile.stagesIn(a.sharedBytes);
  // A persistent kernel accepts any even number of CTAs up to two for each tile of a pair; one with
  // wide clusters needs at least one cluster.
  const auto grid = tile.grid(m, n, a.grid[0]);
  if (a.grid[0] == 0 || !std::ranges::equal(a.grid, grid) || a.block[0] != tile.threads() ||
      a.block[1] != 1 || a.block[2] != 1 || stages < 2)
    return refuseArguments("the launch is not that of the tile");
  const TensorView &x = a.reads[0], &w = a.reads[1], &bias = a.reads[2];
  const TensorView &residual = kNorm ? TensorView() : a.reads[3];
  const auto xStride = rowStrideOf(x, dtype, m, k);
  const auto wStride = rowStrideOf(w, dtype, n, k);
  const auto yStride = rowStrideOf(a.writes[0], dtype, m, n);
  const auto residualStride =
      residual.data ? rowStrideOf(residual, dtype, m, n) : std::optional<int64_t>(0);
  if (!xStride || !wStride || !yStride || !residualStride)
    return refuseArguments("x [M,K], w [N,K], residual and y [M,N] need dense rows at multiples of "
                           "16 bytes");
  if (!isAbsentOrDenseOf(bias, dtype, n) || reinterpret_cast<uintptr_t>(bias.data) % 16 != 0)
    return refuseArguments("bias has to be dense, with one element for each column of y");
  const TensorView &yStatistics = a.writes[1];
  if (yStatistics.data && !isRowStatisticsOf(yStatistics, m, n))
    return refuseArguments("row statistics have to be dense, two f32 for each 64 columns of a row");
  if constexpr (kNorm)
    if (!isRowStatisticsOf(a.reads[3], m, k) ||
        reinterpret_cast<uintptr_t>(a.reads[3].data) % 16 != 0)
      return refuseArguments("row statistics have to be dense, at a multiple of 16 bytes, two f32 "
                             "for each 64 columns of a row");
  GemmParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.w, tileMap(w.data, dtype, n, k, *wStride, wBoxRows, a.onlyChecks));
  CGC_ASSIGN_OR_RETURN(p.x, tileMap(x.data, dtype, m, k, *xStride, xBoxRows, a.onlyChecks));
  p.bias = static_cast<const T *>(bias.data);
  p.residual = static_cast<const T *>(residual.data);
  p.y = static_cast<T *>(a.writes[0].data);
  p.residualStride = *residualStride;
  p.yStride = *yStride;
  p.m = int(m);
  p.n = int(n);
  p.k = int(k);
  p.stages = int(stages);
  p.xGroups = int(statisticsGroups(k));
  p.yGroups = int(statisticsGroups(n));
  p.activation = Activation(kind);
  p.yStatistics = static_cast<RowStatistics *>(yStatistics.data);
  p.wIsConstant = a.constantReads >> 1 & 1;
  p.biasIsConstant = !bias.data || (a.constantReads >> 2 & 1);
  if constexpr (kNorm) {
    p.xStatistics = static_cast<const RowStatistics *>(a.reads[3].data);
    p.eps = static_cast<float>(a.floats[0]);
    p.perColumn = 1.0f / static_cast<float>(k);
  }
  return p;
}

} // namespace
} // namespace cgc
