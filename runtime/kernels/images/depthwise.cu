// depthwise_conv_*: convolution of each channel by itself, of images with dense channels. A warp
// computes a strip of windows along x for 64 channels, two for each thread; the warps of a CTA have
// strips below each other, whose pixels overlap. Weights are in shared memory, in f32.
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/images/images.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc {
namespace {

using namespace device;

constexpr int kStrip = int(kDepthwiseStrip), kMaxPixels = 121;

template <class T> struct DepthwiseParameters {
  const T *image, *w, *bias, *residual; ///< bias and residual are null if absent.
  T *y;
  uint32_t strips;
  Divider rows, stripsOfRow;
  int height, width, channels, columns;
  int kernel[2], stride[2], padding[2], dilation[2]; ///< Of {height, width}.
  Activation activation;
};

/// Adds the products of a row of pixels, which begins at column `left` of the image, with a row of
/// weights to the sums of a strip.
template <class T, int kKernel, int kStride>
__device__ __forceinline__ void addRow(float2 (&sums)[kStrip], const T *row, int left, int width,
                                       int channels, const float2 *weights) {
  constexpr int kPixels = (kStrip - 1) * kStride + kKernel;
  float2 pixels[kPixels];
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    const int x = left + i;
    pixels[i] = x >= 0 && x < width
                    ? toFloats(*reinterpret_cast<const Pair<T> *>(row + int64_t(x) * channels))
                    : float2{};
  }
#pragma unroll
  for (int j = 0; j < kKernel; ++j) {
    const float2 w = weights[j * 32];
#pragma unroll
    for (int i = 0; i < kStrip; ++i) {
      sums[i].x = fmaf(pixels[i * kStride + j].x, w.x, sums[i].x);
      sums[i].y = fmaf(pixels[i * kStride + j].y, w.y, sums[i].y);
    }
  }
}

/// The same for any kernel, stride and dilation.
template <class T>
__device__ __forceinline__ void addAnyRow(float2 (&sums)[kStrip], const T *row, int left, int width,
                                          int channels, const float2 *weights,
                                          const DepthwiseParameters<T> &p) {
#pragma unroll 1
  for (int j = 0; j < p.kernel[1]; ++j) {
    const float2 w = weights[j * 32];
#pragma unroll
    for (int i = 0; i < kStrip; ++i) {
      const int x = left + i * p.stride[1] + j * p.dilation[1];
      if (x < 0 || x >= width)
        continue;
      const float2 pixel =
          toFloats(*reinterpret_cast<const Pair<T> *>(row + int64_t(x) * channels));
      sums[i].x = fmaf(pixel.x, w.x, sums[i].x);
      sums[i].y = fmaf(pixel.y, w.y, sums[i].y);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kImageThreads)
    depthwiseConv(const __grid_constant__ DepthwiseParameters<T> p) {
  __shared__ float2 weights[kMaxPixels * 32];
  griddepLaunchDependents();
  griddepWait();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int firstChannel = int(blockIdx.y) * 64, channel = firstChannel + lane * 2;
  const int pixels = p.kernel[0] * p.kernel[1];
  for (int i = int(threadIdx.x); i < pixels * 64; i += int(kImageThreads)) {
    const int of = i / pixels, at = i - of * pixels;
    reinterpret_cast<float *>(weights)[at * 64 + of] =
        firstChannel + of < p.channels ? toFloat(p.w[int64_t(firstChannel + of) * pixels + at])
                                       : 0.0f;
  }
  __syncthreads();
  const uint32_t strip = blockIdx.x * (kImageThreads / 32) + uint32_t(warp);
  if (strip >= p.strips || channel >= p.channels)
    return;
  // Strips below each other are consecutive.
  const uint32_t column = p.rows.quotient(strip), image = p.stripsOfRow.quotient(column);
  const int row = int(strip - column * p.rows.divisor),
            first = int(column - image * p.stripsOfRow.divisor) * kStrip;
  const int left = first * p.stride[1] - p.padding[1], top = row * p.stride[0] - p.padding[0];
  const T *const of = p.image + int64_t(image) * p.height * p.width * p.channels + channel;
  float2 sums[kStrip] = {};
  const bool isSquare = p.kernel[0] == p.kernel[1] && p.dilation[0] == 1 && p.dilation[1] == 1 &&
                        p.stride[0] == p.stride[1];
  // Of a stride of 1 or 2, so that no two kernels have one form.
  const int form = isSquare && p.stride[0] <= 2 ? p.kernel[0] * 2 + p.stride[0] : 0;
#pragma unroll 1
  for (int j = 0; j < p.kernel[0]; ++j) {
    const int y = top + j * p.dilation[0];
    if (y < 0 || y >= p.height)
      continue;
    const T *const line = of + int64_t(y) * p.width * p.channels;
    const float2 *const w = weights + j * p.kernel[1] * 32 + lane;
    switch (form) {
    case 7 * 2 + 1:
      addRow<T, 7, 1>(sums, line, left, p.width, p.channels, w);
      break;
    case 5 * 2 + 1:
      addRow<T, 5, 1>(sums, line, left, p.width, p.channels, w);
      break;
    case 3 * 2 + 1:
      addRow<T, 3, 1>(sums, line, left, p.width, p.channels, w);
      break;
    case 1 * 2 + 1:
      addRow<T, 1, 1>(sums, line, left, p.width, p.channels, w);
      break;
    case 3 * 2 + 2:
      addRow<T, 3, 2>(sums, line, left, p.width, p.channels, w);
      break;
    default:
      addAnyRow<T>(sums, line, left, p.width, p.channels, w, p);
    }
  }
  const float2 bias =
      p.bias ? toFloats(*reinterpret_cast<const Pair<T> *>(p.bias + channel)) : float2{};
  const int64_t to =
      ((int64_t(image) * int(p.rows.divisor) + row) * p.columns + first) * p.channels + channel;
  withActivation<T>(p.activation, [&](auto activation) {
#pragma unroll
    for (int i = 0; i < kStrip; ++i) {
      if (first + i >= p.columns)
        break;
      const int64_t at = to + int64_t(i) * p.channels;
      Pair<T> result = fromFloats<T>(sums[i].x + bias.x, sums[i].y + bias.y);
      if (p.residual)
        result = __hadd2_rn(result, *reinterpret_cast<const Pair<T> *>(p.residual + at));
      *reinterpret_cast<Pair<T> *>(p.y + at) = activatePair<T>(activation, result);
    }
  });
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const DepthwiseLaunch l = *checkDepthwise(launch, kDTypeOf<T>);
  const ConvWindows &w = l.windows;
  const int64_t stripsOfRow = (w.result[1] + kStrip - 1) / kStrip;
  DepthwiseParameters<T> p{.image = static_cast<const T *>(at.reads[0]),
                           .w = static_cast<const T *>(at.reads[1]),
                           .bias = static_cast<const T *>(at.reads[2]),
                           .residual = static_cast<const T *>(at.reads[3]),
                           .y = static_cast<T *>(at.writes[0]),
                           .strips = uint32_t(l.images * w.result[0] * stripsOfRow),
                           .rows = Divider(uint32_t(w.result[0])),
                           .stripsOfRow = Divider(uint32_t(stripsOfRow)),
                           .height = int(l.height),
                           .width = int(l.width),
                           .channels = int(l.channels),
                           .columns = int(w.result[1]),
                           .activation = l.activation};
  for (const int i : {0, 1}) {
    p.kernel[i] = int(w.kernel[i]);
    p.stride[i] = int(w.stride[i]);
    p.padding[i] = int(w.padding[i]);
    p.dilation[i] = int(w.dilation[i]);
  }
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(depthwise_conv_f16, depthwiseConv<__half>, bind<__half>)
CGC_KERNEL_OF(depthwise_conv_bf16, depthwiseConv<__nv_bfloat16>, bind<__nv_bfloat16>)

} // namespace cgc
