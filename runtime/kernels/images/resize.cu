// resize_*: pictures of any sizes, resized in integers and normalized. A thread computes a pixel of
// a result.
#include "runtime/kernels/images/resize.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct ResizeParameters {
  const uint8_t *pixels;
  const int32_t *table;
  const T *values; ///< [3, 256]
  T *y;
  ResizeLaunch launch;
};

template <class T>
__global__ void __launch_bounds__(kResizeThreads)
    resize(const __grid_constant__ ResizeParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const ResizeLaunch &l = p.launch;
  for (uint32_t pixel = blockIdx.x * kResizeThreads + threadIdx.x; pixel < l.pixels;
       pixel += gridDim.x * kResizeThreads) {
    const uint32_t image = l.area.quotient(pixel), within = pixel - image * l.area.divisor,
                   row = l.columns.quotient(within);
    int result[3];
    resizePixel(p.pixels + image * l.bytes, l.bytes / 3, p.table + image * l.integers, l, int(row),
                int(within - row * l.columns.divisor), result);
    for (uint32_t c = 0; c < 3; ++c)
      p.y[(int64_t(image) * 3 + c) * l.area.divisor + within] = p.values[c * 256 + result[c]];
  }
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(ResizeParameters<T>{
      static_cast<const uint8_t *>(at.reads[0]), static_cast<const int32_t *>(at.reads[1]),
      static_cast<const T *>(at.reads[2]), static_cast<T *>(at.writes[0]),
      *checkResize(launch, kDTypeOf<T>)});
}

} // namespace

CGC_FLOAT_KERNELS(resize, resize, bind)

} // namespace cgc
