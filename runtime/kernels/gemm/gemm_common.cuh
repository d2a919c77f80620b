// Device and host code shared by gemm.cuh and gemm_persistent.cuh: the kernel parameter, the loads
// of operands, the pipeline state, the mainloop, and the scales that normalize rows of X.
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

/// The windows of a convolution: the first pixel of a row of X, and what a step of K reads of it.
struct Windows {
  Divider columns, rows; ///< Windows of an image, along x and y.
  Divider groups;        ///< Groups of kTileK channels of a pixel.
  Divider pixelsOfLine;  ///< Pixels of a window along x.
  int strideX = 0, strideY = 0, paddingX = 0, paddingY = 0, dilationX = 0, dilationY = 0;
};

template <class T> struct GemmParameters {
  CUtensorMap w, x;                  ///< x is of images in conv.
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
  bool gates; ///< gemm only: the residual is a factor instead of an addend.
  /// Persistent kernels; tailTiles are those of the tail launch of pairs beside wide clusters.
  ClusterTiles tiles, tailTiles;
  /// Whether consecutive tiles lie along M: then the kernel reads X, the smaller operand, again and
  /// again and W once.
  bool mIsInner;
  /// Nothing writes w, or bias, while the plan runs.
  bool wIsConstant, biasIsConstant;
  Windows windows; ///< conv only.
};

/// Where a row of X begins: at row `m`, or in conv at a pixel of an image.
template <GemmForm kForm> struct RowOrigin {
  int m;
};
template <> struct RowOrigin<GemmForm::Conv> {
  int x, y, image;
};

template <GemmForm kForm, class T>
__device__ __forceinline__ RowOrigin<kForm> rowOrigin(const GemmParameters<T> &p, int m) {
  if constexpr (kForm == GemmForm::Conv) {
    const Windows &w = p.windows;
    const uint32_t line = w.columns.quotient(uint32_t(m)), image = w.rows.quotient(line);
    return {int(uint32_t(m) - line * w.columns.divisor) * w.strideX - w.paddingX,
            int(line - image * w.rows.divisor) * w.strideY - w.paddingY, int(image)};
  } else {
    return {m};
  }
}

/// What a step of K is in conv: a group of kTileK channels of one pixel of a window.
struct ConvStep {
  int channel, pixel;
  int dx, dy; ///< The pixel's offset from the window's first one.
};
__device__ __forceinline__ ConvStep convStep(const Windows &w, int step) {
  const uint32_t pixel = w.groups.quotient(uint32_t(step)), line = w.pixelsOfLine.quotient(pixel);
  return {int(uint32_t(step) - pixel * w.groups.divisor) * int(kGemmTileK), int(pixel),
          int(pixel - line * w.pixelsOfLine.divisor) * w.dilationX, int(line) * w.dilationY};
}

/// Loads the K step `step` of the rows of X from `origin` on, a box of them. With `ranks`: to these
/// CTAs of the cluster, too.
template <GemmForm kForm, class T, class... Ranks>
__device__ __forceinline__ void loadX(const GemmParameters<T> &p, void *to, int step,
                                      const RowOrigin<kForm> &origin, uint64_t *barrier,
                                      Ranks... ranks) {
  if constexpr (kForm == GemmForm::Conv) {
    const ConvStep of = convStep(p.windows, step);
    if constexpr (sizeof...(Ranks) == 0)
      tmaLoadPixels(to, &p.x, of.channel, origin.x, origin.y, origin.image, of.dx, of.dy, barrier);
    else
      copyPixelsMulticast(to, &p.x, of.channel, origin.x, origin.y, origin.image, of.dx, of.dy,
                          barrier, ranks...);
  } else if constexpr (sizeof...(Ranks) == 0) {
    tmaLoad2d(to, &p.x, step * int(kGemmTileK), origin.m, barrier);
  } else {
    copyTileMulticast(to, &p.x, step * int(kGemmTileK), origin.m, barrier, ranks...);
  }
}

/// Loads the K step `step` of a box of rows of W from row `n` on. `how` is a CachePolicy, or the
/// CTAs of the cluster that get it.
template <GemmForm kForm, class T, class How>
__device__ __forceinline__ void loadW(const GemmParameters<T> &p, void *to, int step, int n,
                                      uint64_t *barrier, How how) {
  constexpr bool kMulticast = std::is_same_v<How, uint16_t>;
  if constexpr (kForm == GemmForm::Conv) {
    const ConvStep of = convStep(p.windows, step);
    if constexpr (kMulticast)
      copyTileMulticast3d(to, &p.w, of.channel, n, of.pixel, barrier, how);
    else
      tmaLoad3d(to, &p.w, of.channel, n, of.pixel, barrier, how);
  } else if constexpr (kMulticast) {
    copyTileMulticast(to, &p.w, step * int(kGemmTileK), n, barrier, how);
  } else {
    tmaLoad2d(to, &p.w, step * int(kGemmTileK), n, barrier, how);
  }
}

/// Adds a residual to two results, or multiplies them by a gate.
template <GemmForm kForm, class T>
__device__ __forceinline__ Pair<T> withResidual(const GemmParameters<T> &p, Pair<T> results,
                                                Pair<T> residual) {
  if (kForm == GemmForm::Plain && p.gates)
    return __hmul2_rn(results, residual);
  return __hadd2_rn(results, residual);
}

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
template <class T, GemmForm kForm>
Result<GemmParameters<T>> gemmParameters(const LaunchView &launch, const LaunchAddresses &at,
                                         const GemmLaunch &l) {
  constexpr DType dtype = kDTypeOf<T>;
  GemmParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.w, tensorMap(at.reads[kGemmW], dtype, l.w));
  if constexpr (kForm == GemmForm::Conv) {
    CGC_ASSIGN_OR_RETURN(p.x, imageMap(at.reads[kGemmX], dtype, l.image));
    const ConvWindows windows = ConvWindows::of(launch.ints);
    const auto divider = [](int64_t by) { return Divider(uint32_t(by)); };
    p.windows = {.columns = divider(windows.result[1]),
                 .rows = divider(windows.result[0]),
                 .groups = divider(l.k / kGemmTileK / (windows.kernel[0] * windows.kernel[1])),
                 .pixelsOfLine = divider(windows.kernel[1]),
                 .strideX = int(windows.stride[1]),
                 .strideY = int(windows.stride[0]),
                 .paddingX = int(windows.padding[1]),
                 .paddingY = int(windows.padding[0]),
                 .dilationX = int(windows.dilation[1]),
                 .dilationY = int(windows.dilation[0])};
  } else {
    CGC_ASSIGN_OR_RETURN(p.x, tensorMap(at.reads[kGemmX], dtype, l.x));
  }
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
  return p;
}

} // namespace
} // namespace cgc
