// stem_conv_*: convolution of images with few channels, the first one of a tower, on the tensor
// cores of sm_80 and later. A CTA copies the pixels that the windows of eight lines read to shared
// memory; each warp gathers the windows of a line there as the left operand.
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

using namespace device;

constexpr int kLines = int(kStemLines), kColumns = int(kStemColumns);

template <class T> struct StemParameters {
  const T *image, *w, *bias; ///< bias is null if absent.
  T *y;
  int64_t strides[4];                                  ///< Of the image, as its sizes.
  int height, width, channels;                         ///< Of the image.
  int rows, columns, results;                          ///< Windows of an image; channels of y.
  int kernelWidth, stride[2], padding[2], dilation[2]; ///< Of {height, width}.
  int k;                                               ///< Products of a result.
  Divider paddedK;                                     ///< Up to a multiple of kStemK.
  /// Tiles along x and y of an image; pixels of a line and lines of a channel in shared memory.
  Divider across, down, line, lines;
  Divider pixel, kernelLine; ///< Elements of a pixel of w; pixels of a line of the kernel.
  Divider parts;             ///< Of 16 bytes of a line in shared memory.
  bool vectors;              ///< Lines are read 16 bytes at a time.
  bool wIsConstant;          ///< Nothing writes w while the plan runs.
  uint32_t tiles;
  Activation activation;
};

/// The channel of y whose weights are the right operand's column `n` (of 64). A thread of an mma
/// has two adjacent columns of each eight; so it gets eight adjacent channels of each 32.
__device__ __forceinline__ int channelOf(int n) {
  return n / 32 * 32 + n % 8 / 2 * 8 + n % 32 / 8 * 2 + n % 2;
}

/// Copies a CTA's weights to shared memory, a row for each column of the right operand.
template <class T>
__device__ void copyWeights(const StemParameters<T> &p, T *weights, int firstChannel) {
#pragma unroll 8
  for (int i = int(threadIdx.x); i < int(kStemChannels) * p.paddedK.divisor;
       i += int(kImageThreads)) {
    const int n = int(p.paddedK.quotient(uint32_t(i))), k = i - n * int(p.paddedK.divisor);
    const int channel = firstChannel + channelOf(n);
    weights[n * (int(p.paddedK.divisor) + kStemPad) + k] =
        channel < p.results && k < p.k ? p.w[int64_t(channel) * p.k + k] : fromFloat<T>(0);
  }
}

/// Where each product's pixel is in shared memory, from the window's first pixel on; -1 behind the
/// last one.
template <class T> __device__ void locateProducts(const StemParameters<T> &p, int *products) {
  for (int k = int(threadIdx.x); k < int(p.paddedK.divisor); k += int(kImageThreads)) {
    const int pixel = int(p.pixel.quotient(uint32_t(k))), channel = k - pixel * p.channels;
    const int y = int(p.kernelLine.quotient(uint32_t(pixel))), x = pixel - y * p.kernelWidth;
    products[k] = k < p.k
                      ? (channel * int(p.lines.divisor) + y * p.dilation[0]) * int(p.line.divisor) +
                            x * p.dilation[1]
                      : -1;
  }
}

/// Copies the pixels of a CTA's windows to shared memory, [channels, lines, pixels of a line];
/// zeros outside of the image. Returns how many pixels of a line precede those.
template <class T>
__device__ int copyPixels(const StemParameters<T> &p, T *pixels, const T *image, int top,
                          int left) {
  const auto forLines = [&](const Divider &ofLine, auto copy) {
    const int count = p.channels * int(p.lines.divisor * ofLine.divisor);
#pragma unroll 4
    for (int i = int(threadIdx.x); i < count; i += int(kImageThreads)) {
      const int line = int(ofLine.quotient(uint32_t(i))),
                channel = int(p.lines.quotient(uint32_t(line))),
                y = top + line - channel * int(p.lines.divisor);
      const T *const from = image + y * p.strides[1] + channel * p.strides[3];
      copy(i, i - line * int(ofLine.divisor), from, y >= 0 && y < p.height);
    }
  };
  if (!p.vectors) {
    forLines(p.line, [&](int i, int at, const T *line, bool isInside) {
      const int x = left + at;
      pixels[i] = isInside && x >= 0 && x < p.width ? line[x * p.strides[2]] : fromFloat<T>(0);
    });
    return 0;
  }
  constexpr int kSize = Vector<T>::kSize;
  const int before = (left % kSize + kSize) % kSize; // The image's lines are whole vectors.
  forLines(p.parts, [&](int i, int at, const T *line, bool isInside) {
    const int x = left - before + at * kSize;
    isInside = isInside && x >= 0 && x < p.width;
    copyAsync(pixels + i * kSize, isInside ? line + x : image, isInside);
  });
  commitCopies();
  return before;
}

/// The sums of a warp's windows for the first 8 kTiles of the CTA's channels, and their results.
template <class T, int kTiles>
__device__ __forceinline__ void multiplyWindows(const StemParameters<T> &p, const T *weights,
                                                const int *products, const T *pixels, int64_t to,
                                                int firstColumn, int firstChannel) {
  constexpr int kHalves = kColumns / 16; // Left operands of 16 windows.
  const int lane = int(threadIdx.x) % 32, paddedK = int(p.paddedK.divisor);
  float sums[kHalves][kTiles][4] = {};
#pragma unroll 1
  for (int k = 0; k < paddedK; k += int(kStemK)) {
    // The products of this thread: two adjacent ones, and two that are eight further on.
    uint32_t of[kHalves][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int2 at = *reinterpret_cast<const int2 *>(products + k + i * 8 + lane % 4 * 2);
#pragma unroll
      for (int row = 0; row < 2 * kHalves; ++row) {
        const T *const window = pixels + (row * 8 + lane / 4) * p.stride[1];
        const T none = fromFloat<T>(0);
        alignas(4)
            const T two[2] = {at.x >= 0 ? window[at.x] : none, at.y >= 0 ? window[at.y] : none};
        of[row / 2][i * 2 + row % 2] = *reinterpret_cast<const uint32_t *>(two);
      }
    }
    const T *const w = weights + lane / 4 * (paddedK + kStemPad) + k + lane % 4 * 2;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const T *const column = w + tile * 8 * (paddedK + kStemPad);
      const uint32_t first = *reinterpret_cast<const uint32_t *>(column),
                     second = *reinterpret_cast<const uint32_t *>(column + 8);
#pragma unroll
      for (int half = 0; half < kHalves; ++half)
        multiply<T>(sums[half][tile], of[half], first, second);
    }
  }
  withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
    for (int of32 = 0; of32 < kTiles / 4; ++of32) {
      const int channel = firstChannel + of32 * 32 + lane % 4 * 8;
      if (channel >= p.results)
        continue;
      float bias[8] = {};
      if (p.bias)
        loadFloats(p.bias + channel, bias);
#pragma unroll
      for (int row = 0; row < 2 * kHalves; ++row) {
        const int column = firstColumn + row * 8 + lane / 4;
        if (column >= p.columns)
          continue;
        Pairs<T> results;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float *const two = &sums[row / 2][of32 * 4 + i][row % 2 * 2];
          results[i] = activatePair<T>(
              activation, fromFloats<T>(two[0] + bias[i * 2], two[1] + bias[i * 2 + 1]));
        }
        storePairs(p.y + (to + column) * p.results + channel, results);
      }
    }
  });
}

template <class T>
__global__ void __launch_bounds__(kImageThreads, 2)
    stemConv(const __grid_constant__ StemParameters<T> p) {
  extern __shared__ uint4 memory[];
  const int paddedK = int(p.paddedK.divisor);
  T *const weights = reinterpret_cast<T *>(memory);
  int *const products = reinterpret_cast<int *>(weights + kStemChannels * (paddedK + kStemPad));
  T *const pixels = reinterpret_cast<T *>(products + paddedK);
  griddepLaunchDependents();
  const int firstChannel = int(blockIdx.y) * int(kStemChannels), line = int(threadIdx.x) / 32;
  // The image of a tile, and its first row and column of windows.
  const auto withOrigin = [&](uint32_t tile, auto f) {
    const uint32_t ofImage = p.across.quotient(tile), image = p.down.quotient(ofImage);
    return f(image, int(ofImage - image * p.down.divisor) * kLines,
             int(tile - ofImage * p.across.divisor) * kColumns);
  };
  const int bufferPixels = p.channels * int(p.lines.divisor * p.line.divisor);
  // Starts to load a tile's pixels, and returns where they are.
  const auto load = [&](uint32_t tile, int buffer) {
    return withOrigin(tile, [&](uint32_t image, int row, int column) {
      T *const to = pixels + buffer * bufferPixels;
      return to + copyPixels(p, to, p.image + image * p.strides[0],
                             row * p.stride[0] - p.padding[0], column * p.stride[1] - p.padding[1]);
    });
  };
  if (p.wIsConstant)
    copyWeights(p, weights, firstChannel);
  locateProducts(p, products);
  griddepWait();
  const T *windows = load(blockIdx.x, 0);
  if (!p.wIsConstant)
    copyWeights(p, weights, firstChannel);
  int buffer = 0;
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    waitForCopies<0>();
    __syncthreads(); // The tile is loaded, and all warps have read the one before it.
    const T *const of = windows + line * p.stride[0] * int(p.line.divisor);
    if (tile + gridDim.x < p.tiles)
      windows = load(tile + gridDim.x, buffer ^= 1);
    withOrigin(tile, [&](uint32_t image, int firstRow, int column) {
      const int row = firstRow + line;
      if (row >= p.rows)
        return;
      const int64_t to = (int64_t(image) * p.rows + row) * p.columns;
      if (p.results - firstChannel <= 32)
        multiplyWindows<T, 4>(p, weights, products, of, to, column, firstChannel);
      else
        multiplyWindows<T, 8>(p, weights, products, of, to, column, firstChannel);
    });
  }
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const StemLaunch l = *checkStem(launch, kDTypeOf<T>);
  const ConvWindows &w = l.windows;
  const auto divider = [](int64_t by) { return Divider(uint32_t(by)); };
  const StemShape shape = StemShape::of(w, l.channels);
  StemParameters<T> p{.image = static_cast<const T *>(at.reads[0]),
                      .w = static_cast<const T *>(at.reads[1]),
                      .bias = static_cast<const T *>(at.reads[2]),
                      .y = static_cast<T *>(at.writes[0]),
                      .height = int(l.height),
                      .width = int(l.width),
                      .channels = int(l.channels),
                      .rows = int(w.result[0]),
                      .columns = int(w.result[1]),
                      .results = int(l.results),
                      .kernelWidth = int(w.kernel[1]),
                      .k = int(shape.k),
                      .paddedK = divider(shape.paddedK()),
                      .across = divider(shape.across),
                      .down = divider(shape.down),
                      .line = divider(shape.linePixels),
                      .lines = divider(shape.lines),
                      .pixel = divider(l.channels),
                      .kernelLine = divider(w.kernel[1]),
                      .parts = divider(shape.linePixels / Vector<T>::kSize),
                      .vectors = l.vectors,
                      .wIsConstant = at.isConstant(1),
                      .tiles = uint32_t(shape.tiles(l.images)),
                      .activation = l.activation};
  std::ranges::copy(l.strides, p.strides);
  setWindows(p, w);
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(stem_conv_f16, stemConv<__half>, bind<__half>)
CGC_KERNEL_OF(stem_conv_bf16, stemConv<__nv_bfloat16>, bind<__nv_bfloat16>)

} // namespace cgc
