// References of batch_norm_*.
#include "runtime/kernels/batch_norm/batch_norm.h"
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

/// The channels of x, and the splits of each.
template <BatchNormOrder order> struct Channels {
  static constexpr bool kIsNhwc = order == BatchNormOrder::Nhwc;
  int64_t count, plane, elements, splits;

  Channels(const TensorView &x, const TensorView &parts)
      : count(kIsNhwc ? x.sizes.back() : x.sizes[1]), plane(elementsOf(x) / count / x.sizes[0]),
        elements(plane * x.sizes[0]), splits(parts.sizes[1]) {}

  /// The offset of element `e` of a channel in the tensor.
  int64_t offset(int64_t channel, int64_t e) const {
    return kIsNhwc ? e * count + channel : (e / plane * count + channel) * plane + e % plane;
  }
  /// Calls f(channel, split, begin, elements) for each split, which may have no elements.
  template <class F> void forSplits(F f) const {
    const int64_t step = batchNormSplitElements(elements, splits);
    for (int64_t channel = 0; channel < count; ++channel)
      for (int64_t split = 0; split < splits; ++split) {
        const int64_t begin = std::min(split * step, elements);
        f(channel, split, begin, std::min(step, elements - begin));
      }
  }
};

/// (x - mean) * scale + bias of a channel.
struct Affine {
  float mean, scale, bias;

  Affine(int64_t channel, float mean, float invstd, const TensorView &weight,
         const TensorView &bias)
      : mean(mean), scale(weight.data ? dataOf<float>(weight)[channel] * invstd : invstd),
        bias(bias.data ? dataOf<float>(bias)[channel] : 0) {}

  float operator()(float x) const { return std::fma(x - mean, scale, bias); }
};

template <class T, BatchNormOrder order> void moments(const ReferenceArguments &a) {
  const T *x = dataOf<T>(a.reads[0]);
  float *to = resultOf<float>(a.writes[0]);
  const Channels<order> channels(a.reads[0], a.writes[0]);
  channels.forSplits([&](int64_t channel, int64_t, int64_t begin, int64_t count) {
    const auto value = [&](int64_t i) { return toFloat(x[channels.offset(channel, begin + i)]); };
    const float mean = count > 0 ? sumOf(count, value) / float(count) : 0;
    *to++ = float(count);
    *to++ = mean;
    *to++ = sumOf(count, [&](int64_t i) { return (value(i) - mean) * (value(i) - mean); });
  });
}

template <class T, BatchNormOrder order> void train(const ReferenceArguments &a) {
  const Channels<order> channels(a.reads[kTrainX], a.reads[kTrainMoments]);
  const T *x = dataOf<T>(a.reads[kTrainX]), *residual = dataOf<T>(a.reads[kTrainResidual]);
  T *y = resultOf<T>(a.writes[kTrainY]);
  const auto momentum = float(a.floats[0]), eps = float(a.floats[1]),
             count = float(channels.elements);
  for (int64_t channel = 0; channel < channels.count; ++channel) {
    const float *splits =
        dataOf<float>(a.reads[kTrainMoments]) + channel * channels.splits * kBatchNormMoments;
    const auto moment = [&](int64_t split, int i) { return splits[split * kBatchNormMoments + i]; };
    const float mean = sumOf(channels.splits, [&](int64_t split) {
      return moment(split, 0) / count * moment(split, 1);
    });
    const float squares = sumOf(channels.splits, [&](int64_t split) {
      const float distance = moment(split, 1) - mean;
      return moment(split, 2) + moment(split, 0) * distance * distance;
    });
    const float invstd = 1 / std::sqrt(squares / count + eps);
    const Affine affine(channel, mean, invstd, a.reads[kTrainWeight], a.reads[kTrainBias]);
    resultOf<float>(a.writes[kTrainMean])[channel] = mean;
    resultOf<float>(a.writes[kTrainInvstd])[channel] = invstd;
    if (a.reads[kTrainRunningMean].data) {
      const float oldMean = dataOf<float>(a.reads[kTrainRunningMean])[channel],
                  oldVar = dataOf<float>(a.reads[kTrainRunningVar])[channel];
      resultOf<float>(a.writes[kTrainNewMean])[channel] =
          (1 - momentum) * oldMean + momentum * mean;
      resultOf<float>(a.writes[kTrainNewVar])[channel] =
          (1 - momentum) * oldVar + momentum * (squares / (count - 1));
    }
    for (int64_t e = 0; e < channels.elements; ++e) {
      const int64_t at = channels.offset(channel, e);
      float value = affine(toFloat(x[at]));
      if (residual)
        value = rounded<T>(value) + toFloat(residual[at]);
      if (a.ints[0] && value < 0) // NaN stays.
        value = 0;
      y[at] = fromFloat<T>(value);
    }
  }
}

/// The operands of both launches of the gradient.
template <class T> struct Gradient {
  const T *gradient, *x;
  bool relu;
  const ReferenceArguments &a;

  explicit Gradient(const ReferenceArguments &a)
      : gradient(dataOf<T>(a.reads[0])), x(dataOf<T>(a.reads[1])), relu(a.ints[0] != 0), a(a) {}

  Affine affine(int64_t channel) const {
    return {channel, dataOf<float>(a.reads[2])[channel], dataOf<float>(a.reads[3])[channel],
            a.reads[4], a.reads[5]};
  }
  /// The gradient of the normalized x, at an offset.
  float ofNormalized(const Affine &affine, int64_t at) const {
    return relu && rounded<T>(affine(toFloat(x[at]))) <= 0 ? 0 : toFloat(gradient[at]);
  }
};

template <class T, BatchNormOrder order> void sums(const ReferenceArguments &a) {
  Gradient<T> operands(a);
  float *to = resultOf<float>(a.writes[0]);
  const Channels<order> channels(a.reads[1], a.writes[0]);
  if (const T *result = dataOf<T>(a.reads[6])) {
    const T *addend = dataOf<T>(a.reads[7]);
    T *masked = resultOf<T>(a.writes[1]);
    for (int64_t i = 0; i < channels.count * channels.elements; ++i) {
      const float sum = toFloat(operands.gradient[i]) + (addend ? toFloat(addend[i]) : 0);
      masked[i] = fromFloat<T>(toFloat(result[i]) <= 0 ? 0 : sum);
    }
    operands.gradient = masked;
    operands.relu = false;
  }
  channels.forSplits([&](int64_t channel, int64_t, int64_t begin, int64_t count) {
    const Affine affine = operands.affine(channel);
    const auto offset = [&](int64_t i) { return channels.offset(channel, begin + i); };
    *to++ = sumOf(count, [&](int64_t i) { return operands.ofNormalized(affine, offset(i)); });
    *to++ = sumOf(count, [&](int64_t i) {
      return operands.ofNormalized(affine, offset(i)) *
             (toFloat(operands.x[offset(i)]) - affine.mean);
    });
  });
}

template <class T, BatchNormOrder order> void backward(const ReferenceArguments &a) {
  const Gradient<T> operands(a);
  const Channels<order> channels(a.reads[1], a.reads[6]);
  T *dx = resultOf<T>(a.writes[0]);
  for (int64_t channel = 0; channel < channels.count; ++channel) {
    const float *splits = dataOf<float>(a.reads[6]) + channel * channels.splits * kBatchNormSums;
    const auto sum = [&](int i) {
      return sumOf(channels.splits,
                   [&](int64_t split) { return splits[split * kBatchNormSums + i]; });
    };
    const float ofGradient = sum(0), ofProduct = sum(1), count = float(channels.elements);
    const float invstd = dataOf<float>(a.reads[3])[channel];
    if (a.writes[1].data)
      resultOf<float>(a.writes[1])[channel] = ofProduct * invstd;
    if (a.writes[2].data)
      resultOf<float>(a.writes[2])[channel] = ofGradient;
    const float mean = ofGradient / count, projection = ofProduct / count * invstd * invstd;
    const Affine affine = operands.affine(channel);
    for (int64_t e = 0; e < channels.elements; ++e) {
      const int64_t at = channels.offset(channel, e);
      const float deviation = toFloat(operands.x[at]) - affine.mean;
      dx[at] = fromFloat<T>((operands.ofNormalized(affine, at) - mean - deviation * projection) *
                            affine.scale);
    }
  }
}

} // namespace

#define CGC_BATCH_NORM_REFERENCES(NAME, T, ORDER)                                                  \
  CGC_REFERENCE(batch_norm_moments_##NAME, (moments<T, BatchNormOrder::ORDER>))                    \
  CGC_REFERENCE(batch_norm_train_##NAME, (train<T, BatchNormOrder::ORDER>))                        \
  CGC_REFERENCE(batch_norm_sums_##NAME, (sums<T, BatchNormOrder::ORDER>))                          \
  CGC_REFERENCE(batch_norm_backward_##NAME, (backward<T, BatchNormOrder::ORDER>))
CGC_BATCH_NORM_REFERENCES(nchw_f32, float, Nchw)
CGC_BATCH_NORM_REFERENCES(nchw_f16, F16, Nchw)
CGC_BATCH_NORM_REFERENCES(nchw_bf16, BF16, Nchw)
CGC_BATCH_NORM_REFERENCES(nhwc_f32, float, Nhwc)
CGC_BATCH_NORM_REFERENCES(nhwc_f16, F16, Nhwc)
CGC_BATCH_NORM_REFERENCES(nhwc_bf16, BF16, Nhwc)
#undef CGC_BATCH_NORM_REFERENCES

} // namespace cgc::reference
