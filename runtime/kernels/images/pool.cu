// pool_*: averages or maxima of the windows of images with dense channels, and pool_backward_*,
// their gradient. A thread computes 16 bytes of channels of a window or a pixel, or one channel.
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
};

/// The pixels of a window along one dimension that are inside the image, and its extent with the
/// padding that is within the windows' reach.
struct WindowRange {
  int first, last, step;
  int padded;
};
__device__ WindowRange rangeOf(int at, int kernel, int stride, int padding, int dilation,
                               int size) {
  const int begin = at * stride - padding, end = min(begin + kernel * dilation, size + padding);
  const int skipped = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
  return {begin + skipped * dilation, min(end, size), dilation, end - begin};
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
    const WindowRange y = rangeOf(int(line - image * p.rows.divisor), p.kernel[0], p.stride[0],
                                  p.padding[0], p.dilation[0], p.height),
                      x = rangeOf(int(pixel - line * p.columns.divisor), p.kernel[1], p.stride[1],
                                  p.padding[1], p.dilation[1], p.width);
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

/// The first of the largest elements of a window, in each of the channels of a thread.
template <class T, int Width>
__device__ void findMaxima(const PoolParameters<T> &p, int image, int channel, const WindowRange &y,
                           const WindowRange &x, int (&places)[Width]) {
  float most[Width];
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    most[i] = -INFINITY;
    places[i] = y.first * p.width + x.first;
  }
  for (int v = y.first; v < y.last; v += y.step)
    for (int u = x.first; u < x.last; u += x.step) {
      float values[Width];
      loadFloats(p.image + (int64_t(image * p.height + v) * p.width + u) * p.channels + channel,
                 values);
#pragma unroll
      for (int i = 0; i < Width; ++i)
        if (values[i] > most[i] || isnan(values[i])) { // As LibTorch, the last NaN.
          most[i] = values[i];
          places[i] = v * p.width + u;
        }
    }
}

/// The window of which the pixel `at` is number `tap` along dimension `d`; -1 if there is none.
template <class T> __device__ int windowOf(const PoolParameters<T> &p, int d, int at, int tap) {
  const int begin = at + p.padding[d] - tap * p.dilation[d], window = begin / p.stride[d];
  return begin >= 0 && window * p.stride[d] == begin && window < p.windows[d] ? window : -1;
}

template <class T, int Width> __device__ void backwardUnits(const PoolParameters<T> &p) {
  for (uint32_t unit = blockIdx.x * kImageThreads + threadIdx.x; unit < p.units;
       unit += gridDim.x * kImageThreads) {
    const uint32_t pixel = p.unitsOfPixel.quotient(unit), line = p.columns.quotient(pixel);
    const int image = int(p.rows.quotient(line)),
              channel = int(unit - pixel * p.unitsOfPixel.divisor) * Width,
              u = int(pixel - line * p.columns.divisor), v = int(line) - image * p.height;
    float sum[Width] = {};
    for (int j = 0; j < p.kernel[0]; ++j) {
      const int row = windowOf(p, 0, v, j);
      if (row < 0)
        continue;
      const WindowRange y =
          rangeOf(row, p.kernel[0], p.stride[0], p.padding[0], p.dilation[0], p.height);
      for (int k = 0; k < p.kernel[1]; ++k) {
        const int column = windowOf(p, 1, u, k);
        if (column < 0)
          continue;
        const WindowRange x =
            rangeOf(column, p.kernel[1], p.stride[1], p.padding[1], p.dilation[1], p.width);
        float grad[Width];
        loadFloats(p.grad +
                       (int64_t(image * p.windows[0] + row) * p.windows[1] + column) * p.channels +
                       channel,
                   grad);
        if (p.isMax) {
          int places[Width];
          findMaxima(p, image, channel, y, x, places);
#pragma unroll
          for (int i = 0; i < Width; ++i)
            sum[i] += places[i] == v * p.width + u ? grad[i] : 0.0f;
        } else {
          const auto by = float(divisorOf(p, y, x, (y.last - y.first) * (x.last - x.first)));
#pragma unroll
          for (int i = 0; i < Width; ++i)
            sum[i] += grad[i] / by;
        }
      }
    }
    storeFloats(p.y + uint64_t(unit) * Width, sum);
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
__global__ void __launch_bounds__(kImageThreads)
    poolBackward(const __grid_constant__ PoolParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.vectors)
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
  const PoolLaunch l = *checkPoolBackward(launch, kDTypeOf<T>);
  PoolParameters<T> p = parametersOf<T>(l, at, l.height, l.width);
  p.grad = static_cast<const T *>(at.reads[1]);
  return KernelParameters(p);
}

} // namespace

CGC_FLOAT_KERNELS(pool, pool, bind)
CGC_FLOAT_KERNELS(pool_backward, poolBackward, bindBackward)

} // namespace cgc
