// patches_*: gathers the patches of images as rows of a matrix, so that a patch embedding is a
// GEMM.
#include "runtime/kernels/rowwise/patches.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_checks.h"

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
  releaseSuccessor();
  waitForPredecessor();
  constexpr int kSize = Vector<T>::kSize;
  if (p.vectors)
    gatherUnits<T, kSize>(p);
  else
    gatherUnits<T, 1>(p);
}

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  constexpr DType dtype = kDTypeOf<T>;
  const TensorView &image = a.reads[0], &y = a.writes[0];
  const int64_t height = a.ints[0], width = a.ints[1];
  if (!isDenseOf(image, dtype, elementsOf(image)) || image.sizes.size() != 4 ||
      elementsOf(image) == 0)
    return refuseArguments("the image has to be dense, [images, channels, height, width]");
  if (height < 1 || width < 1 || height > image.sizes[2] || width > image.sizes[3])
    return refuseArguments("a patch has to be of the image's size or smaller");
  const int64_t down = image.sizes[2] / height, across = image.sizes[3] / width;
  const int64_t rows = image.sizes[0] * down * across, pixels = image.sizes[1] * height * width;
  if (!isDenseOf(y, dtype, elementsOf(y)) || y.sizes.size() != 2 || y.sizes[0] != rows ||
      y.sizes[1] < pixels || elementsOf(y) > INT32_MAX)
    return refuseArguments("y has to be dense, [patches, columns], with a column for each element "
                           "of a patch");
  if (!hasLaunch(a, a.grid[0], kPatchesThreads) || a.grid[0] > UINT32_C(1) << 16)
    return refuseArguments("the grid has to be {up to 65536, 1, 1}, the block {128, 1, 1}, without "
                           "shared memory");
  const int64_t columns = y.sizes[1];
  const bool vectors = hasVectorRows(y, columns);
  const auto perUnit = static_cast<uint32_t>(vectors ? Vector<T>::kSize : 1);
  const auto divider = [](int64_t by) { return Divider(static_cast<uint32_t>(by)); };
  return KernelParameters(PatchesParameters<T>{
      static_cast<const T *>(image.data), static_cast<T *>(y.data),
      static_cast<uint32_t>(elementsOf(y)) / perUnit, divider(columns / perUnit), divider(across),
      divider(down), divider(width), divider(height), static_cast<uint32_t>(pixels),
      static_cast<uint32_t>(image.sizes[1]), image.sizes[3], image.sizes[2], vectors});
}

} // namespace

CGC_FLOAT_KERNELS(patches, patches, bind)

} // namespace cgc
