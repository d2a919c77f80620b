// The batch_norm kernels against double precision: both orders, planes of any size, splits,
// residuals, relu.
#include "runtime/kernels/batch_norm/batch_norm.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

struct BatchNormCase {
  DType dtype;
  std::vector<int64_t> sizes;
  int64_t splits;
  bool hasParameters = true; ///< Weight and bias.
  bool isTracked = true;     ///< Running statistics.
  bool hasResidual = false, relu = false;
  bool hasResult = false, hasAddend = false; ///< Of relu, and of its gradient: sums.
  bool isNhwc = false;                       ///< The sizes are [n, ..., channels].
  uint64_t offset = 0; ///< Offset of every tensor like x in its memory, in elements.
};

class BatchNorm : public KernelTest {
protected:
  static int64_t channelsOf(const BatchNormCase &c) {
    return c.isNhwc ? c.sizes.back() : c.sizes[1];
  }
  static int64_t elementsOfChannel(const BatchNormCase &c) {
    return std::accumulate(c.sizes.begin(), c.sizes.end(), int64_t{1}, std::multiplies()) /
           channelsOf(c);
  }
  /// The index in row-major order of element `e` of a channel.
  static uint64_t index(const BatchNormCase &c, int64_t channel, int64_t e) {
    const int64_t plane = elementsOfChannel(c) / c.sizes[0], channels = channelsOf(c);
    return c.isNhwc ? e * channels + channel : (e / plane * channels + channel) * plane + e % plane;
  }
  static HostTensor likeX(const BatchNormCase &c) {
    return emptyTensor(c.dtype, c.sizes, {}, c.offset);
  }
  /// A tensor like x with multiples of 1 / 8 in [-2, 2], of a period that is prime.
  static HostTensor values(const BatchNormCase &c, int64_t seed) {
    std::vector<double> values(likeX(c).elements());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = double((int64_t(i) * 97 + seed) % 1009 % 33 - 16) / 8;
    return withElements(likeX(c), values);
  }
  static HostTensor ofChannels(const BatchNormCase &c, const std::vector<double> &period) {
    std::vector<double> values(channelsOf(c));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = period[i % period.size()];
    return withValues(emptyTensor(DType::F32, {channelsOf(c)}), values);
  }
  static std::optional<HostTensor> optional(bool is, const HostTensor &tensor) {
    return is ? std::optional(tensor) : std::nullopt;
  }
  static HostTensor splitsOf(const BatchNormCase &c, int64_t floats) {
    return emptyTensor(DType::F32, {channelsOf(c), c.splits, floats});
  }
  /// A launch with a CTA for each split of each channel.
  std::vector<HostTensor> launchSplits(const std::string &kernel, const BatchNormCase &c,
                                       std::vector<std::optional<HostTensor>> reads,
                                       std::vector<HostTensor> writes,
                                       std::vector<int64_t> ints = {},
                                       std::vector<double> floats = {}) {
    const int64_t columns =
        c.isNhwc ? batchNormTiles(channelsOf(c), 16 / dtypeSize(c.dtype)) : channelsOf(c);
    return launch({.kernel = named(kernel + (c.isNhwc ? "_nhwc" : "_nchw"), c.dtype),
                   .blocks = uint64_t(columns * c.splits),
                   .threads = kBatchNormThreads,
                   .reads = std::move(reads),
                   .writes = std::move(writes),
                   .ints = std::move(ints),
                   .floats = std::move(floats)});
  }
  HostTensor moments(const BatchNormCase &c, const HostTensor &x) {
    return launchSplits("batch_norm_moments", c, {x}, {splitsOf(c, kBatchNormMoments)})[0];
  }

  /// Compares the moments of each split with those in double precision, up to `ofVariance`.
  void checkMoments(const BatchNormCase &c, const HostTensor &x, double ofVariance = 1e-5) {
    const HostTensor result = moments(c, x);
    const int64_t elements = elementsOfChannel(c),
                  step = batchNormSplitElements(elements, c.splits);
    std::vector<double> expected;
    for (int64_t channel = 0; channel < channelsOf(c); ++channel)
      for (int64_t split = 0; split < c.splits; ++split) {
        const int64_t begin = std::min(split * step, elements),
                      end = std::min(begin + step, elements);
        double sum = 0, squares = 0;
        for (int64_t e = begin; e < end; ++e)
          sum += x.at(index(c, channel, e));
        const double mean = end > begin ? sum / double(end - begin) : 0;
        for (int64_t e = begin; e < end; ++e)
          squares += std::pow(x.at(index(c, channel, e)) - mean, 2);
        expected.insert(expected.end(), {double(end - begin), mean, squares});
      }
    expectNear(result, [&](uint64_t i) { return expected[i]; }, ofVariance, 1e-5);
  }

  void checkTrain(const BatchNormCase &c) {
    SCOPED_TRACE("plane " + std::to_string(elementsOfChannel(c) / c.sizes[0]) + ", splits " +
                 std::to_string(c.splits));
    constexpr double kMomentum = 0.125, kEps = 1e-3;
    const HostTensor x = values(c, 1), residual = values(c, 5),
                     weight = ofChannels(c, {1, -0.5, 2}), bias = ofChannels(c, {0.25, -1}),
                     oldMean = ofChannels(c, {0.5, 3, -1}), oldVar = ofChannels(c, {1, 2});
    checkMoments(c, x);
    std::vector<HostTensor> writes = {likeX(c), ofChannels(c, {0}), ofChannels(c, {0})};
    if (c.isTracked)
      writes.resize(5, ofChannels(c, {0}));
    const std::vector<HostTensor> results =
        launchSplits("batch_norm_train", c,
                     {x, moments(c, x), optional(c.hasParameters, weight),
                      optional(c.hasParameters, bias), optional(c.hasResidual, residual),
                      optional(c.isTracked, oldMean), optional(c.isTracked, oldVar)},
                     writes, {c.relu}, {kMomentum, kEps});
    const auto elements = double(elementsOfChannel(c));
    std::vector<double> y(x.elements()), statistics[4];
    for (int64_t channel = 0; channel < channelsOf(c); ++channel) {
      double mean = 0, variance = 0;
      for (int64_t e = 0; e < elementsOfChannel(c); ++e)
        mean += x.at(index(c, channel, e)) / elements;
      for (int64_t e = 0; e < elementsOfChannel(c); ++e)
        variance += std::pow(x.at(index(c, channel, e)) - mean, 2) / elements;
      const double invstd = 1 / std::sqrt(variance + kEps),
                   unbiased = variance * elements / (elements - 1);
      statistics[0].push_back(mean);
      statistics[1].push_back(invstd);
      statistics[2].push_back((1 - kMomentum) * oldMean.at(channel) + kMomentum * mean);
      statistics[3].push_back((1 - kMomentum) * oldVar.at(channel) + kMomentum * unbiased);
      for (int64_t e = 0; e < elementsOfChannel(c); ++e) {
        const uint64_t i = index(c, channel, e);
        y[i] = (x.at(i) - mean) * invstd * (c.hasParameters ? weight.at(channel) : 1) +
               (c.hasParameters ? bias.at(channel) : 0) + (c.hasResidual ? residual.at(i) : 0);
        if (c.relu)
          y[i] = std::max(y[i], 0.0);
      }
    }
    // With a residual the normalized x, below 8, is rounded on its own.
    expectNear(
        results[0], [&](uint64_t i) { return y[i]; }, 0,
        2e-5 + (c.hasResidual ? 8 * rounding(c.dtype) : 0));
    for (size_t i = 1; i < results.size(); ++i)
      expectNear(
          results[i], [&](uint64_t channel) { return statistics[i - 1][channel]; }, 1e-5, 1e-5);
  }

  /// The values are such that no normalized x is 0, or rounds to another side of it.
  void checkBackward(const BatchNormCase &c) {
    SCOPED_TRACE("plane " + std::to_string(elementsOfChannel(c) / c.sizes[0]) + ", splits " +
                 std::to_string(c.splits));
    const HostTensor gradient = values(c, 3), x = values(c, 1),
                     mean = ofChannels(c, {0.0625, -0.3125}), invstd = ofChannels(c, {0.5, 1, 2}),
                     weight = ofChannels(c, {1, -0.5, 2}),
                     bias = ofChannels(c, {0.0078125, 0.3984375});
    const std::vector<std::optional<HostTensor>> reads = {gradient,
                                                          x,
                                                          mean,
                                                          invstd,
                                                          optional(c.hasParameters, weight),
                                                          optional(c.hasParameters, bias)};
    const HostTensor result = values(c, 7), addend = values(c, 11);
    const auto behindRelu = [&](uint64_t i) {
      return result.at(i) <= 0 ? 0 : gradient.at(i) + (c.hasAddend ? addend.at(i) : 0);
    };
    std::vector<std::optional<HostTensor>> forSums = reads;
    forSums.push_back(optional(c.hasResult, result));
    forSums.push_back(optional(c.hasAddend, addend));
    std::vector<HostTensor> fromSums = {splitsOf(c, kBatchNormSums)};
    if (c.hasResult)
      fromSums.push_back(likeX(c));
    fromSums = launchSplits("batch_norm_sums", c, forSums, fromSums, {c.relu});
    std::vector<HostTensor> writes = {likeX(c)};
    if (c.hasParameters)
      writes.resize(3, ofChannels(c, {0}));
    std::vector<std::optional<HostTensor>> withSums = reads;
    withSums.emplace_back(fromSums[0]);
    if (c.hasResult)
      withSums[0] = fromSums[1];
    const std::vector<HostTensor> results =
        launchSplits("batch_norm_backward", c, withSums, writes, {c.relu});
    const int64_t elements = elementsOfChannel(c);
    std::vector<double> dx(x.elements()), ofWeight, ofBias;
    for (int64_t channel = 0; channel < channelsOf(c); ++channel) {
      const double scale = invstd.at(channel) * (c.hasParameters ? weight.at(channel) : 1),
                   shift = c.hasParameters ? bias.at(channel) : 0;
      const auto deviation = [&](uint64_t i) { return x.at(i) - mean.at(channel); };
      const auto masked = [&](uint64_t i) {
        return c.hasResult                                   ? behindRelu(i)
               : c.relu && deviation(i) * scale + shift <= 0 ? 0
                                                             : gradient.at(i);
      };
      double sum = 0, product = 0;
      for (int64_t e = 0; e < elements; ++e) {
        const uint64_t i = index(c, channel, e);
        sum += masked(i);
        product += masked(i) * deviation(i);
      }
      ofWeight.push_back(product * invstd.at(channel));
      ofBias.push_back(sum);
      for (int64_t e = 0; e < elements; ++e) {
        const uint64_t i = index(c, channel, e);
        dx[i] =
            scale * (masked(i) - sum / double(elements) -
                     deviation(i) * std::pow(invstd.at(channel), 2) * product / double(elements));
      }
    }
    expectNear(results[0], [&](uint64_t i) { return dx[i]; }, 0, 1e-4);
    if (c.hasResult)
      expectNear(fromSums[1], behindRelu);
    if (!c.hasParameters)
      return;
    const double ofSums = 1e-6 * double(elements);
    expectNear(results[1], [&](uint64_t channel) { return ofWeight[channel]; }, 1e-5, ofSums);
    expectNear(results[2], [&](uint64_t channel) { return ofBias[channel]; }, 1e-5, ofSums);
  }
};
CGC_ON_ALL_EXECUTORS(BatchNorm);

/// Planes that are whole vectors of 16 bytes, of 8, and neither; one and several batches of loads
/// for a thread; splits with few elements and with none.
const std::vector<std::pair<std::vector<int64_t>, int64_t>> kBatchNormShapes = {
    {{2, 3, 1}, 1},       {{1, 2, 5}, 3},        {{3, 5, 7, 7}, 1},   {{64, 33, 7, 7}, 2},
    {{4, 6, 14, 14}, 2},  {{2, 3, 8}, 4},        {{5, 4, 56, 56}, 3}, {{3, 2, 6, 5, 4}, 2},
    {{7, 1, 99, 101}, 9}, {{2, 2, 128, 160}, 1}, {{16, 70, 4, 4}, 1}};

/// Rows of one tile and of several, the last of them whole or not; one and several batches of loads
/// for a thread; splits with few rows and with none.
const std::vector<std::pair<std::vector<int64_t>, int64_t>> kBatchNormRows = {
    {{2, 8}, 1},          {{3, 5, 7, 8}, 2},    {{2, 24}, 3},        {{7, 9, 9, 40}, 2},
    {{2, 30, 31, 64}, 3}, {{5, 11, 13, 72}, 1}, {{2, 7, 7, 512}, 2}, {{1, 600, 8}, 1}};

/// Calls f with a case for each dtype and each shape of both orders.
template <class F> void forCases(F f) {
  for (const DType dtype : kFloats) {
    for (const auto &[sizes, splits] : kBatchNormShapes)
      f(BatchNormCase{.dtype = dtype, .sizes = sizes, .splits = splits});
    for (const auto &[sizes, splits] : kBatchNormRows)
      f(BatchNormCase{.dtype = dtype, .sizes = sizes, .splits = splits, .isNhwc = true});
  }
}

TEST_P(BatchNorm, Train) {
  forCases([&](const BatchNormCase &c) { checkTrain(c); });
}

TEST_P(BatchNorm, TrainWithoutParametersOrStatistics) {
  for (const DType dtype : kFloats)
    for (const bool hasParameters : {false, true})
      for (const bool isNhwc : {false, true})
        checkTrain({.dtype = dtype,
                    .sizes = {4, 6, 14, 16},
                    .splits = 2,
                    .hasParameters = hasParameters,
                    .isTracked = !hasParameters,
                    .isNhwc = isNhwc});
}

TEST_P(BatchNorm, TrainWithReluAndResidual) {
  for (const bool hasResidual : {false, true})
    forCases([&](BatchNormCase c) {
      c.hasResidual = hasResidual;
      c.relu = true;
      checkTrain(c);
    });
}

TEST_P(BatchNorm, Backward) {
  for (const bool relu : {false, true})
    forCases([&](BatchNormCase c) {
      c.relu = relu;
      checkBackward(c);
    });
}

TEST_P(BatchNorm, BackwardBehindReluOfASum) {
  for (const bool hasAddend : {false, true})
    forCases([&](BatchNormCase c) {
      c.hasResult = true;
      c.hasAddend = hasAddend;
      checkBackward(c);
    });
}

TEST_P(BatchNorm, BackwardWithoutParameters) {
  for (const DType dtype : kFloats)
    for (const bool relu : {false, true})
      for (const bool isNhwc : {false, true})
        checkBackward({.dtype = dtype,
                       .sizes = {4, 6, 14, 16},
                       .splits = 2,
                       .hasParameters = false,
                       .relu = relu,
                       .isNhwc = isNhwc});
}

TEST_P(BatchNorm, TensorsThatBeginBetweenVectors) {
  for (const DType dtype : kFloats)
    for (const uint64_t offset : {1, 2, 4}) {
      BatchNormCase c{
          .dtype = dtype, .sizes = {3, 4, 16, 16}, .splits = 2, .relu = true, .offset = offset};
      checkBackward(c);
      c.hasResidual = true;
      checkTrain(c);
      c.relu = false;
      c.hasResult = c.hasAddend = true;
      checkBackward(c);
    }
}

/// A mean far from 0, and a first element far from all others: sums of squares, of the elements or
/// of their distances from the first, would have no digit of the variance.
TEST_P(BatchNorm, VarianceDoesNotCancel) {
  for (const bool isNhwc : {false, true}) {
    const BatchNormCase c{
        .dtype = DType::F32, .sizes = {8, 8, 64, 16}, .splits = 3, .isNhwc = isNhwc};
    std::vector<double> elements = decodeAll(DType::F32, values(c, 1).bytes);
    for (double &element : elements)
      element += 10000;
    checkMoments(c, withElements(likeX(c), elements), 1e-3);
    elements[index(c, 0, 0)] = 0;
    elements[index(c, 1, 0)] = 1e6;
    checkMoments(c, withElements(likeX(c), elements), 1e-3);
  }
}

/// A NaN makes its channel NaN, also after relu.
TEST_P(BatchNorm, NanGoesThrough) {
  const BatchNormCase c{.dtype = DType::BF16, .sizes = {2, 2, 40}, .splits = 1, .relu = true};
  std::vector<double> elements(160, 1);
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = double(i % 5);
  elements[3] = NAN; // In channel 0.
  const HostTensor x = withElements(likeX(c), elements);
  const HostTensor y = launchSplits(
      "batch_norm_train", c,
      {x, moments(c, x), std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt},
      {likeX(c), ofChannels(c, {0}), ofChannels(c, {0})}, {c.relu}, {0.1, 1e-5})[0];
  for (int64_t e = 0; e < 80; ++e) {
    EXPECT_TRUE(std::isnan(y.at(index(c, 0, e))));
    EXPECT_TRUE(std::isfinite(y.at(index(c, 1, e))));
  }
}

} // namespace
} // namespace cgc::test
