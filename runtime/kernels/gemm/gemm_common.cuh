// Device and host code shared by gemm.cuh and gemm_persistent.cuh: the kernel parameter, the loads
// of operands, the pipeline state and the mainloop.
#pragma once

#include "runtime/kernels/device/tensor_map.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/gemm/gemm_rows.cuh"
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
  int strideX = 0, strideY = 0, dilationX = 0, dilationY = 0;
  int beforeX = 0, beforeY = 0; ///< A window begins so many pixels before its place times stride.
  int firstX = 0, firstY = 0;   ///< ConvWindows::firstPixel().
};

struct GemmMaps {
  CUtensorMap w, x;                  ///< x is of images in conv.
  CUtensorMap yTiles, residualTiles; ///< Persistent kernels: boxes of boxM() rows, 64 columns.
};

template <class T> struct GemmParameters : GemmMaps, RowParameters<T> {
  /// Persistent kernels; tailTiles are those of the tail launch of pairs beside wide clusters.
  ClusterTiles tiles, tailTiles;
  /// Whether consecutive tiles lie along M: then the kernel reads X, the smaller operand, again and
  /// again and W once.
  bool mIsInner;
  Windows windows; ///< conv only.
};

/// Where a row of X begins: at row `m`, or in conv at a pixel of an image.
template <GemmForm kForm> struct RowOrigin {
  int m;
};
template <> struct RowOrigin<GemmForm::Conv> {
  int x, y, image;
};

__device__ __forceinline__ RowOrigin<GemmForm::Conv> windowOrigin(const Windows &w, int m) {
  const uint32_t line = w.columns.quotient(uint32_t(m)), image = w.rows.quotient(line);
  return {int(uint32_t(m) - line * w.columns.divisor) * w.strideX - w.beforeX,
          int(line - image * w.rows.divisor) * w.strideY - w.beforeY, int(image)};
}

template <GemmForm kForm, class T>
__device__ __forceinline__ RowOrigin<kForm> rowOrigin(const GemmParameters<T> &p, int m) {
  if constexpr (kForm == GemmForm::Conv) {
    return windowOrigin(p.windows, m);
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
          w.firstX + int(pixel - line * w.pixelsOfLine.divisor) * w.dilationX,
          w.firstY + int(line) * w.dilationY};
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

/// The windows of a checked launch over images with this many channels.
inline Windows windowsOf(const ConvWindows &windows, int64_t channels) {
  const auto divider = [](int64_t by) { return Divider(uint32_t(by)); };
  return {.columns = divider(windows.result[1]),
          .rows = divider(windows.result[0]),
          .groups = divider(GemmTile::tilesOf(channels, kGemmTileK)),
          .pixelsOfLine = divider(windows.kernel[1]),
          .strideX = int(windows.stride[1]),
          .strideY = int(windows.stride[0]),
          .dilationX = int(windows.dilation[1]),
          .dilationY = int(windows.dilation[0]),
          .beforeX = int(windows.padding[1] + windows.firstPixel(1)),
          .beforeY = int(windows.padding[0] + windows.firstPixel(0)),
          .firstX = int(windows.firstPixel(1)),
          .firstY = int(windows.firstPixel(0))};
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
    p.windows = windowsOf(ConvWindows::of(launch.ints), int64_t(l.image.sizes[0]));
  } else {
    CGC_ASSIGN_OR_RETURN(p.x, tensorMap(at.reads[kGemmX], dtype, l.x));
  }
  setRowParameters<kForm>(p, launch, at, l);
  return p;
}

} // namespace
} // namespace cgc
