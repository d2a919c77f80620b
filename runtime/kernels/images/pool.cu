// pool_*: averages or maxima of the windows of images with dense channels. A thread computes 16
// bytes of channels of a window, or one channel.
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct PoolParameters {
  const T *image;
  T *y;
  uint32_t units; ///< Of the result: vectors, or elements.
  Divider unitsOfPixel, columns, rows;
  int height, width, channels;
  int kernel[2], stride[2], padding[2], dilation[2]; ///< Of {height, width}.
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
      const int by = p.divisor != 0 ? p.divisor : p.countsPadding ? y.padded * x.padded : count;
#pragma unroll
      for (int i = 0; i < Width; ++i)
        of[i] = count == 0 ? 0.0f : of[i] / float(by);
    }
    storeFloats(p.y + uint64_t(unit) * Width, of);
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
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const PoolLaunch l = *checkPool(launch, kDTypeOf<T>);
  const ConvWindows &w = l.windows;
  const int64_t perUnit = l.vectors ? Vector<T>::kSize : 1;
  PoolParameters<T> p{.image = static_cast<const T *>(at.reads[0]),
                      .y = static_cast<T *>(at.writes[0]),
                      .units =
                          uint32_t(l.images * w.result[0] * w.result[1] * l.channels / perUnit),
                      .unitsOfPixel = Divider(uint32_t(l.channels / perUnit)),
                      .columns = Divider(uint32_t(w.result[1])),
                      .rows = Divider(uint32_t(w.result[0])),
                      .height = int(l.height),
                      .width = int(l.width),
                      .channels = int(l.channels),
                      .kernel = {int(w.kernel[0]), int(w.kernel[1])},
                      .divisor = int(l.numbers.divisor),
                      .isMax = l.numbers.kind == int64_t(PoolKind::Max),
                      .countsPadding = l.numbers.countsPadding != 0,
                      .vectors = l.vectors};
  setWindows(p, w);
  return KernelParameters(p);
}

} // namespace

CGC_FLOAT_KERNELS(pool, pool, bind)

} // namespace cgc
