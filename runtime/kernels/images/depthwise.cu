// depthwise_conv_*: convolution of each channel by itself, of images with dense channels. A warp
// computes up to four rows of a strip of windows along x, for 64 channels of the result, two for
// each thread; the CTA copies the pixels that its warps read, and the weights in f32, to shared
// memory.
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"

namespace cgc {
namespace {

using namespace device;

constexpr int kStrip = int(kDepthwiseStrip), kMaxRows = int(kDepthwiseMaxRows);

template <class T> struct DepthwiseParameters {
  const T *image, *w, *bias, *residual; ///< bias and residual are null if absent.
  T *y;
  float *statistics;                ///< Row statistics of y; null if not requested.
  Divider across, down, perChannel; ///< CTAs of an image; results of a channel.
  int height, width, channels, rows, columns, results;
  int kernel[2], stride[2], padding[2], dilation[2];     ///< Of {height, width}.
  int tileRows, warpRows, tileStrips, lines, linePixels; ///< As in DepthwiseShape.
  bool vectors, wIsConstant;
  Activation activation;
};

/// Two channels in one word as floats. With kShared both results of a thread are of one channel,
/// the one that `half` selects.
template <class T, bool kShared>
__device__ __forceinline__ float2 valuesOf(uint32_t word, uint32_t half) {
  if constexpr (kShared)
    word = __byte_perm(word, 0, half);
  return toFloats(*reinterpret_cast<const Pair<T> *>(&word));
}
/// The `half` of valuesOf() for a channel.
__device__ __forceinline__ uint32_t halfOf(int channel) {
  return channel % 2 == 0 ? 0x1010 : 0x3232;
}

template <int kRows>
__device__ __forceinline__ void beginSums(float2 (&sums)[kMaxRows][kStrip], float2 bias) {
#pragma unroll
  for (int row = 0; row < kRows; ++row)
#pragma unroll
    for (int i = 0; i < kStrip; ++i)
      sums[row][i] = bias;
}

/// Adds up the products of kRows rows of a strip from the pixels in shared memory, of which this
/// thread's word of the first one is at `pixels`. A line's pixels serve all rows whose windows have
/// it. The lines of several rows of a small kernel are unrolled: its weights stay in registers.
/// Sums begin with the bias.
template <class T, int kKernel, int kStride, int kRows, bool kShared>
__device__ __forceinline__ void addLines(float2 (&sums)[kMaxRows][kStrip], float2 bias,
                                         const uint32_t *pixels, int lineWords, uint32_t half,
                                         const float2 *weights) {
  constexpr int kPixels = (kStrip - 1) * kStride + kKernel;
  constexpr int kLines = (kRows - 1) * kStride + kKernel;
  constexpr int kWords = kShared ? 16 : 32; // Of a pixel.
  constexpr bool kUnrolls = kKernel == 3 && kRows > 1;
  beginSums<kRows>(sums, bias);
  float2 all[kUnrolls ? kKernel * kKernel : 1];
  if constexpr (kUnrolls)
#pragma unroll
    for (int i = 0; i < kKernel * kKernel; ++i)
      all[i] = weights[i * 32];
#pragma unroll(kUnrolls ? kLines : 1)
  for (int line = 0; line < kLines; ++line, pixels += lineWords) {
    float2 of[kPixels];
#pragma unroll
    for (int i = 0; i < kPixels; ++i)
      of[i] = valuesOf<T, kShared>(pixels[i * kWords], half);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int j = line - row * kStride; // The line of the kernel.
      if (j < 0 || j >= kKernel)
        continue;
#pragma unroll
      for (int k = 0; k < kKernel; ++k) {
        const int at = j * kKernel + k;
        const float2 w = kUnrolls ? all[at] : weights[at * 32];
#pragma unroll
        for (int i = 0; i < kStrip; ++i) {
          sums[row][i].x = fmaf(of[i * kStride + k].x, w.x, sums[row][i].x);
          sums[row][i].y = fmaf(of[i * kStride + k].y, w.y, sums[row][i].y);
        }
      }
    }
  }
}

/// The same of one row, from pixels in global memory, for any kernel, stride and dilation. `image`
/// is the word of this thread's channels in the first pixel of an image.
template <class T>
__device__ __forceinline__ void
addAnyLines(float2 (&sums)[kMaxRows][kStrip], float2 bias, const T *image, int top, int left,
            uint32_t half, const float2 *weights, const DepthwiseParameters<T> &p) {
  beginSums<1>(sums, bias);
#pragma unroll 1
  for (int j = 0; j < p.kernel[0]; ++j) {
    const int y = top + j * p.dilation[0];
    if (uint32_t(y) >= uint32_t(p.height))
      continue;
    const T *const line = image + int64_t(y) * p.width * p.channels;
#pragma unroll 1
    for (int k = 0; k < p.kernel[1]; ++k) {
      const float2 w = weights[(j * p.kernel[1] + k) * 32];
#pragma unroll
      for (int i = 0; i < kStrip; ++i) {
        const int x = left + i * p.stride[1] + k * p.dilation[1];
        if (uint32_t(x) >= uint32_t(p.width))
          continue;
        const auto word = *reinterpret_cast<const uint32_t *>(line + int64_t(x) * p.channels);
        const float2 pixel =
            p.perChannel.divisor == 1 ? valuesOf<T, false>(word, 0) : valuesOf<T, true>(word, half);
        sums[0][i].x = fmaf(pixel.x, w.x, sums[0][i].x);
        sums[0][i].y = fmaf(pixel.y, w.y, sums[0][i].y);
      }
    }
  }
}

/// Copies the pixels that a CTA's windows read to shared memory, kWords words of each; zeros
/// outside of the image, and behind its `channels`. `image` is the first pixel's first channel of
/// those.
template <class T, int kWords>
__device__ __forceinline__ void copyPixels(uint32_t *to, const T *image, int top, int left,
                                           int channels, const DepthwiseParameters<T> &p) {
  const int lane = int(threadIdx.x) % 32, warps = int(blockDim.x) / 32;
  const auto copyLines = [&](auto words) {
    constexpr int kPart = decltype(words)::value, kParts = kWords / kPart; // Of a pixel.
    constexpr int kStep = 32 / kParts;                                     // Pixels of a warp.
    const int first = lane / kParts, channel = lane % kParts * kPart * 2;
    for (int line = int(threadIdx.x) / 32; line < p.lines; line += warps) {
      const int y = top + line;
      const bool isInside = uint32_t(y) < uint32_t(p.height) && channel < channels;
      const uint32_t width = isInside ? uint32_t(p.width) : 0;
      const T *from = image + (int64_t(y) * p.width + left + first) * p.channels + channel;
      uint32_t *at = to + (line * p.linePixels + first) * kWords + channel / 2;
#pragma unroll 4
      for (int pixel = first; pixel < p.linePixels; pixel += kStep) {
        const bool isPixel = uint32_t(left + pixel) < width;
        copyAsync<kPart * 4>(at, isPixel ? from : image, isPixel);
        from += kStep * p.channels;
        at += kStep * kWords;
      }
    }
  };
  if (p.vectors)
    copyLines(std::integral_constant<int, 4>());
  else
    copyLines(std::integral_constant<int, 1>());
}

/// Copies the weights of a CTA's channels to shared memory, in f32, 64 for each pixel of the
/// kernel.
template <class T>
__device__ __forceinline__ void copyWeights(float *to, int firstChannel,
                                            const DepthwiseParameters<T> &p) {
  const int pixels = p.kernel[0] * p.kernel[1];
  const auto copyParts = [&](auto width) {
    constexpr int kWidth = decltype(width)::value, kParts = 64 / kWidth;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < pixels * kParts; i += int(blockDim.x)) {
      const int channel = firstChannel + i % kParts * kWidth;
      float values[kWidth] = {};
      if (channel < p.results)
        loadFloats(p.w + i / kParts * p.results + channel, values);
      storeFloats(to + i * kWidth, values);
    }
  };
  if (p.vectors)
    copyParts(std::integral_constant<int, 4>());
  else
    copyParts(std::integral_constant<int, 2>());
}

/// Adds up 2 kNumbers numbers over the lanes of a warp whose indices differ in a bit from 2
/// kNumbers down to 2: each step adds up two lanes' numbers and leaves either lane with half of
/// them. Lane l is left with number l / 2, in of[0].
template <int kNumbers> __device__ __forceinline__ void addOverLanes(float (&of)[2 * kStrip]) {
  const bool isUpper = threadIdx.x & kNumbers * 2;
#pragma unroll
  for (int i = 0; i < kNumbers; ++i) {
    const float given = isUpper ? of[i] : of[i + kNumbers],
                kept = isUpper ? of[i + kNumbers] : of[i];
    of[i] = kept + __shfl_xor_sync(0xffffffffu, given, kNumbers * 2);
  }
  if constexpr (kNumbers > 1)
    addOverLanes<kNumbers / 2>(of);
}

/// Writes the row statistics of a strip's windows, of which each lane has two channels: the sums in
/// even floats, the sums of squares in odd ones.
__device__ __forceinline__ void storeStripStatistics(float *to, int groups, int windows,
                                                     float (&of)[2 * kStrip]) {
  static_assert(kStrip * 4 == 32); // Four lanes for each window are left with its numbers.
  const int lane = int(threadIdx.x) % 32, window = lane / 4;
  addOverLanes<kStrip>(of);
  const float sum = of[0] + __shfl_xor_sync(0xffffffffu, of[0], 1);
  if (lane % 2 == 0 && window < windows)
    to[int64_t(window) * groups * 2 + lane / 2 % 2] = sum;
}

/// Rounds the sums of a warp, which include the bias, and writes the results of `rows` rows of
/// `windows` windows, from pixel `to` of y on. All rows are in one activation's code, and no sum
/// moves to another register.
template <class T>
__device__ __forceinline__ void storeRows(const float2 (&sums)[kMaxRows][kStrip], int64_t to,
                                          int rows, int windows, int channel,
                                          const DepthwiseParameters<T> &p) {
  const bool isInside = channel < p.results;
  const int count = isInside ? windows : 0;
  const int64_t first = to * p.results + channel, line = int64_t(p.columns) * p.results;
  Pair<T> results[kMaxRows][kStrip];
  const auto forRows = [&](auto f) {
#pragma unroll
    for (int row = 0; row < kMaxRows; ++row)
      if (row < rows)
        f(row, results[row]);
  };
  // Calls f(i, element) with each window of a row and its first element in the tensor at `of`.
  const auto forWindows = [&](auto *of, int row, auto f) {
    of += first + row * line;
#pragma unroll
    for (int i = 0; i < kStrip; ++i, of += p.results)
      if (i < count)
        f(i, of);
  };
  forRows([&](int row, Pair<T>(&of)[kStrip]) {
#pragma unroll
    for (int i = 0; i < kStrip; ++i)
      of[i] = fromFloats<T>(sums[row][i].x, sums[row][i].y);
  });
  if (p.residual)
    forRows([&](int row, Pair<T>(&of)[kStrip]) {
      forWindows(p.residual, row, [&](int i, const T *residual) {
        of[i] = __hadd2_rn(of[i], *reinterpret_cast<const Pair<T> *>(residual));
      });
    });
  withActivation<T>(p.activation, [&](auto activation) {
    forRows([&](int, Pair<T>(&of)[kStrip]) {
#pragma unroll
      for (int i = 0; i < kStrip; ++i)
        of[i] = activatePair<T>(activation, of[i]);
    });
  });
  forRows([&](int row, Pair<T>(&of)[kStrip]) {
    forWindows(p.y, row, [&](int i, T *y) { *reinterpret_cast<Pair<T> *>(y) = of[i]; });
  });
  if (!p.statistics)
    return;
  forRows([&](int row, Pair<T>(&of)[kStrip]) {
    float statistics[2 * kStrip];
#pragma unroll
    for (int i = 0; i < kStrip; ++i) {
      const float2 stored = isInside ? toFloats(of[i]) : float2{};
      statistics[2 * i] = stored.x + stored.y;
      statistics[2 * i + 1] = stored.x * stored.x + stored.y * stored.y;
    }
    const int groups = int(gridDim.y);
    const int64_t at = (to + int64_t(row) * p.columns) * groups + blockIdx.y;
    storeStripStatistics(p.statistics + at * 2, groups, windows, statistics);
  });
}

template <class T>
__global__ void __launch_bounds__(kImageThreads, 2)
    depthwiseConv(const __grid_constant__ DepthwiseParameters<T> p) {
  extern __shared__ uint4 memory[];
  float *const weights = reinterpret_cast<float *>(memory);
  uint32_t *const pixels = reinterpret_cast<uint32_t *>(weights + p.kernel[0] * p.kernel[1] * 64);
  griddepLaunchDependents();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int firstChannel = int(blockIdx.y) * 64, channel = firstChannel + lane * 2;
  const uint32_t ofImage = p.across.quotient(blockIdx.x), image = p.down.quotient(ofImage);
  // The windows of the CTA and of the warp: first row and column.
  const int tileRow = int(ofImage - image * p.down.divisor) * p.tileRows * p.warpRows,
            tileColumn = int(blockIdx.x - ofImage * p.across.divisor) * p.tileStrips * kStrip;
  const int warpStrip = warp / p.tileRows,
            row = tileRow + (warp - warpStrip * p.tileRows) * p.warpRows,
            column = tileColumn + warpStrip * kStrip;
  const T *const first = p.image + int64_t(image) * p.height * p.width * p.channels;
  const int stride = p.stride[1], kernel = p.kernel[1];
  if (p.wIsConstant)
    copyWeights(weights, firstChannel, p);
  griddepWait();
  const bool hasForm = p.lines != 0, isShared = p.perChannel.divisor != 1;
  if (hasForm) {
    const int of = isShared ? firstChannel / 2 : firstChannel; // Of the images.
    const int top = tileRow * p.stride[0] - p.padding[0], left = tileColumn * stride - p.padding[1];
    if (isShared)
      copyPixels<T, 16>(pixels, first + of, top, left, p.channels - of, p);
    else
      copyPixels<T, 32>(pixels, first + of, top, left, p.channels - of, p);
    commitCopies();
  }
  if (!p.wIsConstant)
    copyWeights(weights, firstChannel, p);
  const float2 bias = p.bias && channel < p.results
                          ? toFloats(*reinterpret_cast<const Pair<T> *>(p.bias + channel))
                          : float2{};
  waitForCopies<0>();
  __syncthreads();
  if (column >= p.columns || row >= p.rows)
    return;
  float2 sums[kMaxRows][kStrip];
  const float2 *const w = reinterpret_cast<const float2 *>(weights) + lane;
  if (hasForm) {
    const int words = isShared ? 16 : 32;
    const int lineWords = p.linePixels * words;
    const uint32_t half = halfOf(lane);
    const uint32_t *const of = pixels + (row - tileRow) * p.stride[0] * lineWords +
                               (column - tileColumn) * stride * words +
                               (isShared ? lane / 2 : lane);
    const auto addRows = [&]<int kKernel, int kStride, bool kShared>() {
      if (p.warpRows == 1)
        addLines<T, kKernel, kStride, 1, kShared>(sums, bias, of, lineWords, half, w);
      else if (kStride == 2 || p.warpRows == 2)
        addLines<T, kKernel, kStride, 2, kShared>(sums, bias, of, lineWords, half, w);
      else
        addLines<T, kKernel, kStride, kMaxRows, kShared>(sums, bias, of, lineWords, half, w);
    };
    const auto add = [&]<int kKernel, int kStride>() {
      if (isShared)
        addRows.template operator()<kKernel, kStride, true>();
      else
        addRows.template operator()<kKernel, kStride, false>();
    };
    // Of a stride of 1 or 2, so that no two kernels have one form.
    switch (kernel * 2 + stride) {
    case 7 * 2 + 1:
      add.template operator()<7, 1>();
      break;
    case 7 * 2 + 2:
      add.template operator()<7, 2>();
      break;
    case 5 * 2 + 1:
      add.template operator()<5, 1>();
      break;
    case 3 * 2 + 1:
      add.template operator()<3, 1>();
      break;
    default:
      add.template operator()<3, 2>();
    }
  } else if (channel < p.results) {
    const int of = int(p.perChannel.quotient(uint32_t(channel)));
    addAnyLines<T>(sums, bias, first + of / 2 * 2, row * p.stride[0] - p.padding[0],
                   column * stride - p.padding[1], halfOf(of), w, p);
  }
  storeRows<T>(sums, (int64_t(image) * p.rows + row) * p.columns + column,
               min(p.warpRows, p.rows - row), min(kStrip, p.columns - column), channel, p);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const DepthwiseLaunch l = *checkDepthwise(launch, kDTypeOf<T>);
  const ConvWindows &w = l.windows;
  const DepthwiseShape &shape = l.shape;
  DepthwiseParameters<T> p{.image = static_cast<const T *>(at.reads[0]),
                           .w = static_cast<const T *>(at.reads[1]),
                           .bias = static_cast<const T *>(at.reads[2]),
                           .residual = static_cast<const T *>(at.reads[3]),
                           .y = static_cast<T *>(at.writes[0]),
                           .statistics = static_cast<float *>(at.writes[1]),
                           .across = Divider(uint32_t(shape.across)),
                           .down = Divider(uint32_t(shape.down)),
                           .perChannel = Divider(uint32_t(l.results / l.channels)),
                           .height = int(l.height),
                           .width = int(l.width),
                           .channels = int(l.channels),
                           .rows = int(w.result[0]),
                           .columns = int(w.result[1]),
                           .results = int(l.results),
                           .kernel = {int(w.kernel[0]), int(w.kernel[1])},
                           .tileRows = int(shape.tileRows),
                           .warpRows = int(shape.rows),
                           .tileStrips = int(shape.tileStrips),
                           .lines = int(shape.lines),
                           .linePixels = int(shape.linePixels),
                           .vectors = l.vectors,
                           .wIsConstant = at.isConstant(1),
                           .activation = l.activation};
  setWindows(p, w);
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(depthwise_conv_f16, depthwiseConv<__half>, bind<__half>)
CGC_KERNEL_OF(depthwise_conv_bf16, depthwiseConv<__nv_bfloat16>, bind<__nv_bfloat16>)

} // namespace cgc
