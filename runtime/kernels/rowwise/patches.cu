// patches_*: gathers the patches of images as rows of a matrix, so that a patch embedding is a
// GEMM.
#include "runtime/kernels/rowwise/patches.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct PatchesParameters {
  const T *image;
  T *y;
  uint32_t units;        ///< Units of the result: vectors, or elements.
  Divider unitsOfRow;    ///< Units of a row of the result.
  Divider across, down;  ///< Patches of an image along x and y.
  Divider width, height; ///< Pixels of a patch.
  uint32_t pixels;       ///< Elements of a patch; the rest of a row is zeros.
  uint32_t channels;
  int64_t imageWidth, imageHeight;
  bool vectors;
};

template <class T, int Width> __device__ void gatherUnits(const PatchesParameters<T> &p) {
  for (uint32_t unit = blockIdx.x * kPatchesThreads + threadIdx.x; unit < p.units;
       unit += gridDim.x * kPatchesThreads) {
    const uint32_t row = p.unitsOfRow.quotient(unit);
    uint32_t column = (unit - row * p.unitsOfRow.divisor) * Width;
    const uint32_t rowOfPatches = p.across.quotient(row), image = p.down.quotient(rowOfPatches);
    const uint32_t left = (row - rowOfPatches * p.across.divisor) * p.width.divisor;
    const uint32_t top = (rowOfPatches - image * p.down.divisor) * p.height.divisor;
    Pack<T, Width> pack;
#pragma unroll
    for (int i = 0; i < Width; ++i, ++column) {
      const uint32_t line = p.width.quotient(column), channel = p.height.quotient(line);
      const uint32_t x = left + column - line * p.width.divisor;
      const uint32_t y = top + line - channel * p.height.divisor;
      const int64_t plane = int64_t(image) * p.channels + channel;
      pack.v[i] = column < p.pixels ? p.image[(plane * p.imageHeight + y) * p.imageWidth + x]
                                    : fromFloat<T>(0.0f);
    }
    *reinterpret_cast<Pack<T, Width> *>(p.y + uint64_t(unit) * Width) = pack;
  }
}

template <class T>
__global__ void __launch_bounds__(kPatchesThreads)
    patches(const __grid_constant__ PatchesParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kSize = Vector<T>::kSize;
  if (p.vectors)
    gatherUnits<T, kSize>(p);
  else
    gatherUnits<T, 1>(p);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const PatchesLaunch l = *checkPatches(launch, kDTypeOf<T>);
  const std::span<const int64_t> image = launch.reads[0].sizes, y = launch.writes[0].sizes;
  const auto perUnit = static_cast<uint32_t>(l.vectors ? Vector<T>::kSize : 1);
  const auto divider = [](int64_t by) { return Divider(static_cast<uint32_t>(by)); };
  return KernelParameters(PatchesParameters<T>{
      static_cast<const T *>(at.reads[0]), static_cast<T *>(at.writes[0]),
      static_cast<uint32_t>(y[0] * y[1]) / perUnit, divider(l.columns / perUnit), divider(l.across),
      divider(l.down), divider(l.width), divider(l.height), static_cast<uint32_t>(l.pixels),
      static_cast<uint32_t>(image[1]), image[3], image[2], l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(patches, patches, bind)

} // namespace cgc
