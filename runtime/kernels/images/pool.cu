// pool_*: averages or maxima of the windows of images with dense channels, and pool_backward_*,
// their gradient. A thread computes 16 bytes of channels of a window or a pixel, or one channel.
// The gradient of a maximum goes by tiles of pixels, whose windows have their maxima in shared
// memory.
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct PoolParameters {
  const T *image, *grad; ///< The gradient of the results: pool_backward only.
  T *y;
  uint32_t units; ///< Of the result: vectors, or elements.
  Divider unitsOfPixel, columns, rows;
  int height, width, channels;
  int kernel[2], stride[2], padding[2], dilation[2], windows[2]; ///< Of {height, width}.
  int divisor;
  bool isMax, countsPadding, vectors;
  bool isTiled;                                      ///< pool_backward: by tiles of the images.
  uint32_t tilesDeep, tilesAcross, tilesDown, tiles; ///< Of channels, columns and rows; of all.
};

/// The most windows that have pixels of a tile: those of a kernel of 3 x 3 with a stride of 1.
constexpr int kTileWindows = (kPoolTile + 2) * (kPoolTile + 2);

/// The pixels of a window along one dimension that are inside the image, and its extent with the
/// padding that is within the windows' reach.
struct WindowRange {
  int first, last, step;
  int skipped; ///< Pixels before the first.
  int padded;
};
/// Those of the window `at` along dimension `d`.
template <class T> __device__ WindowRange rangeOf(const PoolParameters<T> &p, int d, int at) {
  const int size = d == 0 ? p.height : p.width, dilation = p.dilation[d];
  const int begin = at * p.stride[d] - p.padding[d],
            end = min(begin + p.kernel[d] * dilation, size + p.padding[d]);
  const int skipped = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
  return {begin + skipped * dilation, min(end, size), dilation, skipped, end - begin};
}

/// What the sum of a window, with `count` pixels of the image, is divided by.
template <class T>
__device__ int divisorOf(const PoolParameters<T> &p, const WindowRange &y, const WindowRange &x,
                         int count) {
  return p.divisor != 0 ? p.divisor : p.countsPadding ? y.padded * x.padded : count;
}

template <class T, int Width> __device__ void poolUnits(const PoolParameters<T> &p) {
  for (uint32_t unit = blockIdx.x * kImageThreads + threadIdx.x; unit < p.units;
       unit += gridDim.x * kImageThreads) {
    const uint32_t pixel = p.unitsOfPixel.quotient(unit), line = p.columns.quotient(pixel),
                   image = p.rows.quotient(line);
    const int channel = int(unit - pixel * p.unitsOfPixel.divisor) * Width;
    const WindowRange y = rangeOf(p, 0, int(line - image * p.rows.divisor)),
                      x = rangeOf(p, 1, int(pixel - line * p.columns.divisor));
    float of[Width];
#pragma unroll
    for (int i = 0; i < Width; ++i)
      of[i] = p.isMax ? -INFINITY : 0.0f;
    int count = 0;
    for (int v = y.first; v < y.last; v += y.step)
      for (int u = x.first; u < x.last; u += x.step, ++count) {
        float values[Width];
        loadFloats(p.image + (int64_t(int(image) * p.height + v) * p.width + u) * p.channels +
                       channel,
                   values);
#pragma unroll
        for (int i = 0; i < Width; ++i)
          of[i] = p.isMax ? maxOrNan(of[i], values[i]) : of[i] + values[i];
      }
    if (!p.isMax) {
      const int by = divisorOf(p, y, x, count);
#pragma unroll
      for (int i = 0; i < Width; ++i)
        of[i] = count == 0 ? 0.0f : of[i] / float(by);
    }
    storeFloats(p.y + uint64_t(unit) * Width, of);
  }
}

/// The number in its window, row by row, of the first of its largest elements, in each of the
/// channels of a thread.
template <class T, int Width>
__device__ void findMaxima(const PoolParameters<T> &p, int image, int channel, const WindowRange &y,
                           const WindowRange &x, int (&taps)[Width]) {
  constexpr int kBatch = 3; // Loads in flight.
  float most[Width];
  int line = y.skipped * p.kernel[1];
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    most[i] = -INFINITY;
    taps[i] = line + x.skipped;
  }
  for (int v = y.first; v < y.last; v += y.step, line += p.kernel[1]) {
    const T *row = p.image + int64_t(image * p.height + v) * p.width * p.channels + channel;
    int tap = line + x.skipped;
    for (int u = x.first; u < x.last; u += kBatch * x.step, tap += kBatch) {
      Pack<T, Width> values[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
        if (const int column = u + b * x.step; column < x.last)
          values[b] = *reinterpret_cast<const Pack<T, Width> *>(row + int64_t(column) * p.channels);
#pragma unroll
      for (int b = 0; b < kBatch; ++b)
        if (u + b * x.step < x.last)
#pragma unroll
          for (int i = 0; i < Width; ++i)
            if (const float value = toFloat(values[b].v[i]);
                value > most[i] || isnan(value)) { // As LibTorch, the last NaN.
              most[i] = value;
              taps[i] = tap + b;
            }
    }
  }
}

/// Calls f(window, tap) for the windows along dimension `d` that have the pixel `at`, which is
/// number `tap` of theirs.
template <class T, class F>
__device__ void forWindowsOf(const PoolParameters<T> &p, int d, int at, F f) {
  const int dilation = p.dilation[d], extent = p.kernel[d] * dilation;
  int window = min((at + p.padding[d]) / p.stride[d], p.windows[d] - 1);
  int distance = at + p.padding[d] - window * p.stride[d];
  for (; window >= 0 && distance < extent; --window, distance += p.stride[d])
    if (const int tap = dilation == 1 ? distance : distance / dilation; tap * dilation == distance)
      f(window, tap);
}

/// The gradient of a window, in each of the channels of a thread.
template <class T, int Width>
__device__ void loadGradient(const PoolParameters<T> &p, int image, int row, int column,
                             int channel, float (&grad)[Width]) {
  loadFloats(p.grad + (int64_t(image * p.windows[0] + row) * p.windows[1] + column) * p.channels +
                 channel,
             grad);
}

/// The gradient of averages, or of maxima of one channel for each thread.
template <class T, int Width> __device__ void backwardUnits(const PoolParameters<T> &p) {
  for (uint32_t unit = blockIdx.x * kImageThreads + threadIdx.x; unit < p.units;
       unit += gridDim.x * kImageThreads) {
    const uint32_t pixel = p.unitsOfPixel.quotient(unit), line = p.columns.quotient(pixel);
    const int image = int(p.rows.quotient(line)),
              channel = int(unit - pixel * p.unitsOfPixel.divisor) * Width,
              u = int(pixel - line * p.columns.divisor), v = int(line) - image * p.height;
    float sum[Width] = {};
    forWindowsOf(p, 0, v, [&](int row, int j) {
      const WindowRange y = rangeOf(p, 0, row);
      forWindowsOf(p, 1, u, [&](int column, int k) {
        const WindowRange x = rangeOf(p, 1, column);
        float grad[Width];
        loadGradient(p, image, row, column, channel, grad);
        if (Width == 1 && p.isMax) {
          int taps[Width];
          findMaxima(p, image, channel, y, x, taps);
#pragma unroll
          for (int i = 0; i < Width; ++i)
            sum[i] += taps[i] == j * p.kernel[1] + k ? grad[i] : 0.0f;
        } else {
          const auto by = float(divisorOf(p, y, x, (y.last - y.first) * (x.last - x.first)));
#pragma unroll
          for (int i = 0; i < Width; ++i)
            sum[i] += grad[i] / by;
        }
      });
    });
    storeFloats(p.y + uint64_t(unit) * Width, sum);
  }
}

/// The windows that have pixels of a tile, along one dimension.
struct TileWindows {
  int first, count;
};
/// Those of the tile that begins at the pixel `at` along dimension `d`.
template <class T> __device__ TileWindows windowsOfTile(const PoolParameters<T> &p, int d, int at) {
  const int begin = at + p.padding[d], reach = (p.kernel[d] - 1) * p.dilation[d];
  const int first = max(begin - reach + p.stride[d] - 1, 0) / p.stride[d],
            end = min((begin + kPoolTile - 1) / p.stride[d] + 1, p.windows[d]);
  return {first, max(end - first, 0)};
}

/// The gradient of maxima. A CTA finds the maximum of each window of a tile once; then each pixel
/// sums the gradients of the windows that it is the maximum of, always in the same order.
template <class T, int Width> __device__ void backwardTiles(const PoolParameters<T> &p) {
  using Taps = Pack<uint8_t, Width>;
  __shared__ Taps maxima[kTileWindows * kPoolTileUnits];
  constexpr int kLanes = kImageThreads / kPoolTileUnits;
  const int unit = threadIdx.x % kPoolTileUnits, lane = threadIdx.x / kPoolTileUnits;
  for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const uint32_t across = tile / p.tilesDeep, down = across / p.tilesAcross;
    const int channel = int(tile % p.tilesDeep * kPoolTileUnits + unit) * Width,
              left = int(across % p.tilesAcross) * kPoolTile,
              top = int(down % p.tilesDown) * kPoolTile, image = int(down / p.tilesDown);
    const bool isInside = channel < p.channels;
    const TileWindows rows = windowsOfTile(p, 0, top), columns = windowsOfTile(p, 1, left);
    for (int at = lane; isInside && at < rows.count * columns.count; at += kLanes) {
      const int row = at / columns.count, column = at - row * columns.count;
      int taps[Width];
      findMaxima(p, image, channel, rangeOf(p, 0, rows.first + row),
                 rangeOf(p, 1, columns.first + column), taps);
      Taps bytes;
#pragma unroll
      for (int i = 0; i < Width; ++i)
        bytes.v[i] = uint8_t(taps[i]);
      maxima[at * kPoolTileUnits + unit] = bytes;
    }
    __syncthreads();
    for (int at = lane; isInside && at < kPoolTile * kPoolTile; at += kLanes) {
      const int v = top + at / kPoolTile, u = left + at % kPoolTile;
      if (v >= p.height || u >= p.width)
        continue;
      float sum[Width] = {};
      forWindowsOf(p, 0, v, [&](int row, int j) {
        forWindowsOf(p, 1, u, [&](int column, int k) {
          const int window = (row - rows.first) * columns.count + column - columns.first;
          const Taps taps = maxima[window * kPoolTileUnits + unit];
          float grad[Width];
          loadGradient(p, image, row, column, channel, grad);
#pragma unroll
          for (int i = 0; i < Width; ++i)
            sum[i] += taps.v[i] == j * p.kernel[1] + k ? grad[i] : 0.0f;
        });
      });
      storeFloats(p.y + (int64_t(image * p.height + v) * p.width + u) * p.channels + channel, sum);
    }
    __syncthreads(); // The next tile overwrites the maxima.
  }
}

template <class T>
__global__ void __launch_bounds__(kImageThreads) pool(const __grid_constant__ PoolParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.vectors)
    poolUnits<T, Vector<T>::kSize>(p);
  else
    poolUnits<T, 1>(p);
}

template <class T>
__global__ void __launch_bounds__(kImageThreads, /*minBlocks=*/4)
    poolBackward(const __grid_constant__ PoolParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.isTiled && p.vectors)
    backwardTiles<T, Vector<T>::kSize>(p);
  else if (p.isTiled)
    backwardTiles<T, 1>(p);
  else if (p.vectors)
    backwardUnits<T, Vector<T>::kSize>(p);
  else
    backwardUnits<T, 1>(p);
}

/// The parameter of a launch whose result has `rows` x `columns` pixels for each image.
template <class T>
PoolParameters<T> parametersOf(const PoolLaunch &l, const LaunchAddresses &at, int64_t rows,
                               int64_t columns) {
  const ConvWindows &w = l.windows;
  const int64_t perUnit = l.vectors ? Vector<T>::kSize : 1;
  PoolParameters<T> p{.image = static_cast<const T *>(at.reads[0]),
                      .grad = nullptr,
                      .y = static_cast<T *>(at.writes[0]),
                      .units = uint32_t(l.images * rows * columns * l.channels / perUnit),
                      .unitsOfPixel = Divider(uint32_t(l.channels / perUnit)),
                      .columns = Divider(uint32_t(columns)),
                      .rows = Divider(uint32_t(rows)),
                      .height = int(l.height),
                      .width = int(l.width),
                      .channels = int(l.channels),
                      .kernel = {int(w.kernel[0]), int(w.kernel[1])},
                      .windows = {int(w.result[0]), int(w.result[1])},
                      .divisor = int(l.numbers.divisor),
                      .isMax = l.numbers.kind == int64_t(PoolKind::Max),
                      .countsPadding = l.numbers.countsPadding != 0,
                      .vectors = l.vectors};
  setWindows(p, w);
  return p;
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const PoolLaunch l = *checkPool(launch, kDTypeOf<T>);
  return KernelParameters(parametersOf<T>(l, at, l.windows.result[0], l.windows.result[1]));
}

template <class T>
Result<KernelParameters> bindBackward(const LaunchView &launch, const LaunchAddresses &at) {
  PoolLaunch l = *checkPoolBackward(launch, kDTypeOf<T>);
  const ConvWindows &w = l.windows;
  const auto windows = [&](size_t d) { // That have pixels of a tile.
    return (kPoolTile - 1 + (w.kernel[d] - 1) * w.dilation[d]) / w.stride[d] + 1;
  };
  const bool isMax = l.numbers.kind == int64_t(PoolKind::Max),
             isTiled = isMax && w.kernel[0] * w.kernel[1] <= 256 && windows(0) <= kTileWindows &&
                       windows(1) <= kTileWindows && windows(0) * windows(1) <= kTileWindows;
  l.vectors &= isTiled || !isMax;
  PoolParameters<T> p = parametersOf<T>(l, at, l.height, l.width);
  p.grad = static_cast<const T *>(at.reads[1]);
  p.isTiled = isTiled;
  const auto parts = [](int64_t of, int64_t size) { return uint32_t((of + size - 1) / size); };
  p.tilesDeep = parts(p.unitsOfPixel.divisor, kPoolTileUnits);
  p.tilesAcross = parts(l.width, kPoolTile);
  p.tilesDown = parts(l.height, kPoolTile);
  p.tiles = uint32_t(l.images) * p.tilesDeep * p.tilesAcross * p.tilesDown;
  return KernelParameters(p);
}

} // namespace

CGC_FLOAT_KERNELS(pool, pool, bind)
CGC_FLOAT_KERNELS(pool_backward, poolBackward, bindBackward)

} // namespace cgc
