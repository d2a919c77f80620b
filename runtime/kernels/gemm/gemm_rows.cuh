// What all GEMM kernels for 16 bits share: the part of their parameter that does not depend on how
// operands are loaded, the scales that normalize rows of X, and the end of the epilogue, which
// stores rows of y.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/rowwise/row_statistics.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct RowParameters {
  const T *bias, *residual; ///< Null if absent.
  T *y;
  int64_t residualStride, yStride;  ///< From row to row, in elements.
  RowStatistics *yStatistics;       ///< [M, yGroups]; null if not requested.
  const RowStatistics *xStatistics; ///< [M, xGroups]; gemm_norm only, like eps and perColumn.
  float eps, perColumn;             ///< perColumn is 1 / K.
  int m, n, k, stages;
  int xGroups, yGroups; ///< statisticsGroups() of K and of N.
  Activation activation;
  bool gates; ///< gemm only: the residual is a factor instead of an addend.
  /// Nothing writes w, or bias, while the plan runs.
  bool wIsConstant, biasIsConstant;
};

/// 1 / sqrt(variance + eps) of a row of x, from the statistics of the whole row. It scales the
/// row's accumulators. The mean of the row adds nothing to them because each row of w sums to 0.
template <class T> __device__ float scaleOf(const RowParameters<T> &p, const RowStatistics &of) {
  const float mean = of.sum * p.perColumn, variance = of.squares * p.perColumn - mean * mean;
  return rsqrtf(fmaxf(variance, 0) + p.eps);
}
/// The same scale, from the statistics of row `m` in global memory: two groups (16 bytes) for each
/// load and 8 loads in flight. An odd number of groups is loaded one at a time.
template <class T> __device__ float scaleOf(const RowParameters<T> &p, int64_t m) {
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

/// Adds a residual to two results, or multiplies them by a gate.
template <GemmForm kForm, class T>
__device__ __forceinline__ Pair<T> withResidual(const RowParameters<T> &p, Pair<T> results,
                                                Pair<T> residual) {
  if (kForm == GemmForm::Plain && p.gates)
    return __hmul2_rn(results, residual);
  return __hadd2_rn(results, residual);
}

template <GemmForm kForm, class T>
__device__ __forceinline__ bool hasResidual(const RowParameters<T> &p) {
  return kForm != GemmForm::Norm && p.residual;
}

/// The residual, if there is one, of eight consecutive results of row `m` from column `n` on, if
/// they are `inside` y.
template <GemmForm kForm, class T>
__device__ __forceinline__ Pairs<T> residualOf(const RowParameters<T> &p, bool inside, int64_t m,
                                               int n) {
  Pairs<T> more;
  if (inside && hasResidual<kForm>(p))
    more = loadPairs(p.residual + m * p.residualStride + n);
  return more;
}

/// Applies activation and residual or gate (conv: residual and activation; gemm_norm has none) to
/// eight consecutive results of row `m` from column `n` on, stores them, and writes the row
/// statistics of y if requested. `more` is residualOf() these results. All lanes of a warp call it;
/// eight consecutive lanes have 64 columns of one row. Lanes that are not `inside` y store nothing.
template <GemmForm kForm, class T>
__device__ void epilogue(const RowParameters<T> &p, bool inside, int64_t m, int n, Pairs<T> values,
                         Pairs<T> more) {
  const auto activate = [&] {
    withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
      for (int i = 0; i < Pairs<T>::kSize; ++i)
        values[i] = activatePair<T>(activation, values[i]);
    });
  };
  if constexpr (kForm != GemmForm::Conv)
    activate();
  if (hasResidual<kForm>(p)) {
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      values[i] = withResidual<kForm>(p, values[i], more[i]);
  }
  if constexpr (kForm == GemmForm::Conv)
    activate();
  if (inside)
    storePairs(p.y + m * p.yStride + n, values);
  if (p.yStatistics) {
    RowStatistics statistics{};
#pragma unroll
    for (int i = 0; i < Pairs<T>::kSize; ++i)
      statistics.add(inside ? toFloats(values[i]) : float2{});
    storeSumOfLanes(p.yStatistics + m * p.yGroups + n / kStatisticsGroup, inside, statistics);
  }
}

/// Sets the parameters of a checked launch.
template <GemmForm kForm, class T>
void setRowParameters(RowParameters<T> &p, const LaunchView &launch, const LaunchAddresses &at,
                      const GemmLaunch &l) {
  p.bias = static_cast<const T *>(at.reads[kGemmBias]);
  p.residual = static_cast<const T *>(kForm == GemmForm::Norm ? nullptr : at.reads[kGemmResidual]);
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
  p.gates = l.gates;
  p.yStatistics = static_cast<RowStatistics *>(at.writes[kGemmYStatistics]);
  p.wIsConstant = at.isConstant(kGemmW);
  p.biasIsConstant = !at.reads[kGemmBias] || at.isConstant(kGemmBias);
  if constexpr (kForm == GemmForm::Norm) {
    p.xStatistics = static_cast<const RowStatistics *>(at.reads[kGemmXStatistics]);
    p.eps = static_cast<float>(launch.floats[0]);
    p.perColumn = 1.0f / static_cast<float>(l.k);
  }
}

} // namespace
} // namespace cgc
