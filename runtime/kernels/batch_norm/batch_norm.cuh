// What the batch_norm kernels of both orders have in common: partial results and how they are
// merged, the formulas, parameters and bind functions.
#pragma once

#include "runtime/kernels/batch_norm/batch_norm.h"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc::device {

/// The number of some elements, their mean, and the sum of the squares of their deviations from it.
struct Moments {
  float count, mean, squares;
};
/// The moments of both sets of elements (Chan, Golub and LeVeque). Either set may be empty.
__device__ inline Moments merged(const Moments &a, const Moments &b) {
  const float count = a.count + b.count, share = count > 0 ? b.count / count : 0.0f,
              distance = b.mean - a.mean;
  return {count, a.mean + distance * share,
          a.squares + b.squares + distance * (distance * (a.count * share))};
}

/// The sum of a gradient, and of the gradient times (x - mean).
struct Sums {
  float gradient, product;

  __device__ void add(float g, float deviation) {
    gradient += g;
    product += g * deviation;
  }
};
__device__ inline Sums merged(const Sums &a, const Sums &b) {
  return {a.gradient + b.gradient, a.product + b.product};
}

/// The part with each of its floats replaced by `f` of it.
template <class Part, class F> __device__ Part mapFloats(Part part, F f) {
  auto *const floats = reinterpret_cast<float *>(&part);
#pragma unroll
  for (int i = 0; i < int(sizeof(Part) / sizeof(float)); ++i)
    floats[i] = f(floats[i]);
  return part;
}

/// The parts of the warp merged, in lane 0. Always in the same order.
template <class Part> __device__ Part warpMerged(Part part) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    part = merged(
        part, mapFloats(part, [&](float v) { return __shfl_down_sync(0xffffffffu, v, offset); }));
  return part;
}

/// The layout as CTAs take it.
struct ChannelTable : BatchNormLayout {
  Divider planes;

  explicit ChannelTable(const BatchNormLayout &layout)
      : BatchNormLayout(layout), planes(layout.plane) {}
};

/// (x - mean) * scale + bias of a channel, computed alike in both directions.
struct Affine {
  float mean, scale, bias;

  __device__ float operator()(float x) const { return fmaf(x - mean, scale, bias); }
};
/// Weight and bias may be null.
__device__ inline Affine affineOf(uint32_t channel, float mean, float invstd, const float *weight,
                                  const float *bias) {
  return {mean, weight ? weight[channel] * invstd : invstd, bias ? bias[channel] : 0.0f};
}

template <class T> struct MomentsParameters {
  const T *x;
  Moments *moments;
  ChannelTable table;
};

template <class T> struct TrainParameters {
  const T *x, *residual; ///< residual may be null.
  const Moments *moments;
  const float *weight, *bias;            ///< May be null.
  const float *runningMean, *runningVar; ///< Null if nothing tracks them, and so are their results.
  T *y;
  float *mean, *invstd, *newMean, *newVar;
  ChannelTable table;
  float momentum, eps;
  bool relu;
};

template <class T>
__device__ void storeStatistics(const TrainParameters<T> &p, uint32_t channel,
                                const Moments &moments, float invstd) {
  p.mean[channel] = moments.mean;
  p.invstd[channel] = invstd;
  if (!p.runningMean)
    return;
  const float oldMean = p.runningMean[channel], oldVar = p.runningVar[channel];
  const float keep = 1.0f - p.momentum, variance = moments.squares / (moments.count - 1.0f);
  p.newMean[channel] = keep * oldMean + p.momentum * moments.mean;
  p.newVar[channel] = keep * oldVar + p.momentum * variance;
}

/// y for a value of x, and the residual if there is one.
template <class T>
__device__ float resultOf(const TrainParameters<T> &p, const Affine &affine, float x,
                          float residual) {
  float y = affine(x);
  if (p.residual)
    y = toFloat(fromFloat<T>(y)) + residual;
  return p.relu ? device::Relu()(y) : y;
}

/// What both launches of the gradient read.
template <class T> struct GradientOperands {
  const T *gradient, *x;
  const float *mean, *invstd;
  const float *weight, *bias; ///< May be null.
  bool relu;                  ///< The gradient is that of relu's result.

  __device__ Affine affine(uint32_t channel) const {
    return affineOf(channel, mean[channel], invstd[channel], weight, bias);
  }
  /// The gradient of the normalized x.
  __device__ float ofNormalized(const Affine &affine, float gradient, float x) const {
    return relu && toFloat(fromFloat<T>(affine(x))) <= 0 ? 0.0f : gradient;
  }
};

/// The gradient of a sum, from that of its relu.
template <class T> struct ReluOperands {
  const T *result, *addend; ///< Of relu, and of its gradient. May be null.
  T *masked;                ///< Null if result is.

  __device__ float operator()(float gradient, float addend, float result) const {
    const float sum = this->addend ? toFloat(fromFloat<T>(gradient + addend)) : gradient;
    return result <= 0 ? 0.0f : sum;
  }
};

template <class T> struct SumsParameters {
  GradientOperands<T> operands;
  ReluOperands<T> relu;
  Sums *sums;
  ChannelTable table;
};

template <class T> struct BackwardParameters {
  GradientOperands<T> operands;
  const Sums *sums;
  T *dx;
  float *weightGradient, *biasGradient; ///< May be null.
  ChannelTable table;
};

/// What the gradient of x needs of a channel: mean(g), and mean(g (x - mean)) / variance.
struct ChannelGradient {
  float mean, projection;

  __device__ float operator()(const Affine &affine, float g, float x) const {
    return (g - mean - (x - affine.mean) * projection) * affine.scale;
  }
};
__device__ inline ChannelGradient channelGradientOf(const Sums &sums, float count, float invstd) {
  return {sums.gradient / count, sums.product / count * invstd * invstd};
}

template <class T>
__device__ void storeGradients(const BackwardParameters<T> &p, uint32_t channel, const Sums &sums) {
  if (p.weightGradient)
    p.weightGradient[channel] = sums.product * p.operands.invstd[channel];
  if (p.biasGradient)
    p.biasGradient[channel] = sums.gradient;
}

template <class T, BatchNormOrder order>
Result<KernelParameters> bindMoments(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(MomentsParameters<T>{
      static_cast<const T *>(at.reads[0]), static_cast<Moments *>(at.writes[0]),
      ChannelTable(*checkBatchNormMoments(launch, kDTypeOf<T>, order))});
}

template <class T, BatchNormOrder order>
Result<KernelParameters> bindTrain(const LaunchView &launch, const LaunchAddresses &at) {
  const auto readFloats = [&](size_t i) { return static_cast<const float *>(at.reads[i]); };
  const auto writtenFloats = [&](size_t i) { return static_cast<float *>(at.writes[i]); };
  return KernelParameters(TrainParameters<T>{
      static_cast<const T *>(at.reads[kTrainX]), static_cast<const T *>(at.reads[kTrainResidual]),
      static_cast<const Moments *>(at.reads[kTrainMoments]), readFloats(kTrainWeight),
      readFloats(kTrainBias), readFloats(kTrainRunningMean), readFloats(kTrainRunningVar),
      static_cast<T *>(at.writes[kTrainY]), writtenFloats(kTrainMean), writtenFloats(kTrainInvstd),
      writtenFloats(kTrainNewMean), writtenFloats(kTrainNewVar),
      ChannelTable(*checkBatchNormTrain(launch, kDTypeOf<T>, order)),
      static_cast<float>(launch.floats[0]), static_cast<float>(launch.floats[1]),
      launch.ints[0] != 0});
}

template <class T>
GradientOperands<T> gradientOperands(const LaunchView &launch, const LaunchAddresses &at) {
  const auto floats = [&](size_t i) { return static_cast<const float *>(at.reads[i]); };
  return {static_cast<const T *>(at.reads[0]),
          static_cast<const T *>(at.reads[1]),
          floats(2),
          floats(3),
          floats(4),
          floats(5),
          launch.ints[0] != 0};
}

template <class T, BatchNormOrder order>
Result<KernelParameters> bindSums(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(
      SumsParameters<T>{gradientOperands<T>(launch, at),
                        {static_cast<const T *>(at.reads[6]), static_cast<const T *>(at.reads[7]),
                         static_cast<T *>(at.writes[1])},
                        static_cast<Sums *>(at.writes[0]),
                        ChannelTable(*checkBatchNormSums(launch, kDTypeOf<T>, order))});
}

template <class T, BatchNormOrder order>
Result<KernelParameters> bindBackward(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(
      BackwardParameters<T>{gradientOperands<T>(launch, at), static_cast<const Sums *>(at.reads[6]),
                            static_cast<T *>(at.writes[0]), static_cast<float *>(at.writes[1]),
                            static_cast<float *>(at.writes[2]),
                            ChannelTable(*checkBatchNormBackward(launch, kDTypeOf<T>, order))});
}

} // namespace cgc::device
