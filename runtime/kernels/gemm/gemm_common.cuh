// Device and host code shared by gemm.cuh and gemm_persistent.cuh: the kernel parameter, the
// pipeline state, the mainloop, and the scales that normalize rows of X.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/device/tensor_map.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/rowwise/row_statistics.cuh"
#include "runtime/kernels/sm90/hopper.cuh"
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

/// The parameter of a checked launch, without the fields that only persistent kernels have.
template <class T, bool kNorm>
Result<GemmParameters<T>> gemmParameters(const LaunchView &launch, const LaunchAddresses &at,
                                         const GemmLaunch &l) {
  constexpr DType dtype = kDTypeOf<T>;
  GemmParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.w, tensorMap(at.reads[kGemmW], dtype, l.w));
  CGC_ASSIGN_OR_RETURN(p.x, tensorMap(at.reads[kGemmX], dtype, l.x));
  p.bias = static_cast<const T *>(at.reads[kGemmBias]);
  p.residual = static_cast<const T *>(kNorm ? nullptr : at.reads[kGemmResidual]);
  p.y = static_cast<T *>(at.writes[kGemmY]);
  p.residualStride = l.residualStride;
  p.yStride = l.yStride;
  p.m = int(l.m);
  p.n = int(l.n);
  p.k = int(l.k);
  p.stages = int(l.stages);
  p.xGroups = int(statisticsGroups(l.k));
  p.yGroups = int(statisticsGroups(l.n));
  p.activation = l.activation;
  p.yStatistics = static_cast<RowStatistics *>(at.writes[kGemmYStatistics]);
  p.wIsConstant = at.isConstant(kGemmW);
  p.biasIsConstant = !at.reads[kGemmBias] || at.isConstant(kGemmBias);
  if constexpr (kNorm) {
    p.xStatistics = static_cast<const RowStatistics *>(at.reads[kGemmXStatistics]);
    p.eps = static_cast<float>(launch.floats[0]);
    p.perColumn = 1.0f / static_cast<float>(l.k);
  }
  return p;
}

} // namespace
} // namespace cgc
