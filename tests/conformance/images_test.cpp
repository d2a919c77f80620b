// depthwise_conv, stem_conv, pool and pool_backward against double precision: odd geometries, every
// activation, ceil mode, and NaN.
#include "runtime/kernels/images/images.h"
#include "tests/conformance/gemm_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

struct ImageCase {
  int64_t images, height, width, channels;
  ConvWindows windows;
  int64_t outputs = 0; ///< Channels of the result; 0: as many as the images.

  int64_t elements() const { return images * height * width * channels; }
  int64_t resultChannels() const { return outputs ? outputs : channels; }
  int64_t windowsOfAll() const { return images * windows.result[0] * windows.result[1]; }
  int64_t results() const { return windowsOfAll() * resultChannels(); }
};

ImageCase withOutputs(ImageCase c, int64_t outputs) {
  c.outputs = outputs;
  return c;
}

/// With as many windows as fit, or one more in each dimension.
ImageCase caseOf(int64_t images, std::array<int64_t, 2> sizes, int64_t channels,
                 std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                 std::array<int64_t, 2> padding, std::array<int64_t, 2> dilation = {1, 1},
                 int64_t more = 0) {
  ConvWindows windows{kernel, stride, padding, dilation, {}};
  for (const int i : {0, 1})
    windows.result[i] =
        (sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1 + more;
  return {images, sizes[0], sizes[1], channels, windows};
}

/// Calls `f(y, x, tap)` with the pixels inside the image of the window of result `i`.
template <class F> void forPixels(const ImageCase &c, uint64_t i, F f) {
  const ConvWindows &w = c.windows;
  const auto window = int64_t(i) / c.resultChannels(), column = window % w.result[1],
             row = window / w.result[1] % w.result[0];
  for (int64_t j = 0; j < w.kernel[0]; ++j)
    for (int64_t k = 0; k < w.kernel[1]; ++k) {
      const int64_t y = row * w.stride[0] - w.padding[0] + j * w.dilation[0],
                    x = column * w.stride[1] - w.padding[1] + k * w.dilation[1];
      if (y >= 0 && y < c.height && x >= 0 && x < c.width)
        f(y, x, j * w.kernel[1] + k);
    }
}

/// The element of the images, at a pixel, of the first channel of those that result `i` reads.
int64_t pixelAt(const ImageCase &c, uint64_t i, int64_t y, int64_t x) {
  const int64_t image = int64_t(i) / (c.results() / c.images);
  return ((image * c.height + y) * c.width + x) * c.channels;
}
/// The same of its own channel.
int64_t elementAt(const ImageCase &c, uint64_t i, int64_t y, int64_t x) {
  const int64_t channel = int64_t(i) % c.resultChannels();
  return pixelAt(c, i, y, x) + channel / (c.resultChannels() / c.channels);
}

std::vector<int64_t> numbersOf(std::vector<int64_t> first, const ConvWindows &windows) {
  std::ranges::copy(windows.ints(), std::back_inserter(first));
  return first;
}

class Images : public KernelTest {
protected:
  /// Checks y against `termsOf(i, add)`, which calls add(term) with the products of result `i`.
  template <class F>
  void check(const HostTensor &y, const std::vector<double> &bias,
             const std::vector<double> &residual, Activation activation, F termsOf) {
    const DType dtype = y.dtype;
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      double sum = bias.empty() ? 0 : bias[i % bias.size()], magnitude = std::abs(sum);
      termsOf(i, [&](double term) {
        sum += term;
        magnitude += std::abs(term);
      });
      double error = magnitude * 0x1p-20;
      const auto round = [&] {
        error += rounding(dtype) * (std::abs(sum) + error) + smallest(dtype);
      };
      round();
      if (!residual.empty()) {
        sum += residual[i];
        round();
      }
      if (activation != Activation::None) {
        sum = activate(activation, sum);
        error = 1.13 * error + (activation == Activation::Gelu ? kGeluError : 1e-6);
        round();
      }
      ASSERT_NEAR(y.at(i), sum, error) << "element " << i;
    }
  }

  HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double> &values) {
    return withElements(emptyTensor(dtype, std::move(sizes)), values);
  }

  void checkDepthwise(DType dtype, const ImageCase &c, Activation activation, bool hasBias,
                      bool hasResidual) {
    const int64_t outputs = c.resultChannels();
    const ConvWindows &windows = c.windows;
    const int64_t taps = windows.kernel[0] * windows.kernel[1];
    const std::vector<double> x = numbers(dtype, c.elements(), 1),
                              w = numbers(dtype, outputs * taps, 2, 0.3),
                              bias = numbers(dtype, hasBias ? outputs : 0, 3),
                              residual = numbers(dtype, hasResidual ? c.results() : 0, 4);
    const std::vector<int64_t> result = {c.images, windows.result[0], windows.result[1], outputs};
    const auto shape = DepthwiseShape::of(c.images, windows, c.channels, outputs);
    Launch launch{
        .kernel = named("depthwise_conv", dtype),
        .blocks = uint64_t(shape.grid[0]),
        .threads = shape.threads,
        .reads = {tensor(dtype, {c.images, c.height, c.width, c.channels}, x),
                  tensor(dtype, {windows.kernel[0], windows.kernel[1], outputs}, w), std::nullopt,
                  std::nullopt},
        .writes = {emptyTensor(dtype, result), emptyRowStatistics(c.windowsOfAll(), outputs)},
        .ints = numbersOf({int64_t(activation)}, windows),
        .blocksY = uint32_t(shape.grid[1]),
        .sharedBytes = shape.sharedBytes};
    if (hasBias)
      launch.reads[2] = tensor(dtype, {outputs}, bias);
    if (hasResidual)
      launch.reads[3] = tensor(dtype, result, residual);
    const std::vector<HostTensor> results = this->launch(launch);
    check(results[0], bias, residual, activation, [&](uint64_t i, auto add) {
      forPixels(c, i, [&](int64_t v, int64_t u, int64_t tap) {
        add(x[elementAt(c, i, v, u)] * w[tap * outputs + int64_t(i) % outputs]);
      });
    });
    expectRowStatisticsOf(results[0], c.windowsOfAll(), results[1]);
    launch.writes.pop_back();
    ASSERT_EQ(this->launch(launch)[0].bytes, results[0].bytes);
  }

  /// With images whose channels are dense, or whose pixels are.
  void checkStem(DType dtype, const ImageCase &c, Activation activation, bool hasBias,
                 bool hasPlanes) {
    const ConvWindows &windows = c.windows;
    const StemShape shape = StemShape::of(windows, c.channels);
    const auto grid = shape.grid(c.images, c.outputs);
    const std::vector<double> x = numbers(dtype, c.elements(), 1),
                              w = numbers(dtype, c.outputs * shape.k, 2, 0.3),
                              bias = numbers(dtype, hasBias ? c.outputs : 0, 3);
    HostTensor image = emptyTensor(dtype, {c.images, c.height, c.width, c.channels});
    if (hasPlanes)
      image = emptyTensor(dtype, {c.images, c.height, c.width, c.channels},
                          {c.channels * c.height * c.width, c.width, 1, c.height * c.width});
    Launch launch{
        .kernel = named("stem_conv", dtype),
        .blocks = uint64_t(grid[0]),
        .threads = kImageThreads,
        .reads = {withElements(image, x),
                  tensor(dtype, {c.outputs, windows.kernel[0], windows.kernel[1], c.channels}, w),
                  std::nullopt},
        .writes = {emptyTensor(dtype, {c.images, windows.result[0], windows.result[1], c.outputs})},
        .ints = numbersOf({int64_t(activation)}, windows),
        .blocksY = uint32_t(grid[1]),
        .sharedBytes = uint32_t(shape.sharedBytes())};
    if (hasBias)
      launch.reads[2] = tensor(dtype, {c.outputs}, bias);
    check(this->launch(launch)[0], bias, {}, activation, [&](uint64_t i, auto add) {
      const double *const of = &w[int64_t(i) % c.outputs * shape.k];
      forPixels(c, i, [&](int64_t v, int64_t u, int64_t tap) {
        for (int64_t channel = 0; channel < c.channels; ++channel)
          add(x[pixelAt(c, i, v, u) + channel] * of[tap * c.channels + channel]);
      });
    });
  }

  HostTensor pool(DType dtype, const ImageCase &c, const HostTensor &x,
                  const PoolNumbers &numbers) {
    const auto ints = numbers.ints();
    return launch({.kernel = named("pool", dtype),
                   .blocks = poolBlocks(uint64_t(c.results())),
                   .threads = kImageThreads,
                   .reads = {x},
                   .writes = {emptyTensor(
                       dtype, {c.images, c.windows.result[0], c.windows.result[1], c.channels})},
                   .ints = numbersOf({ints.begin(), ints.end()}, c.windows)})[0];
  }

  /// Checks pool_backward against gradients that are added window by window.
  void checkPoolBackward(DType dtype, const ImageCase &c, const PoolNumbers &numbers,
                         const std::vector<double> &x) {
    const std::vector<int64_t> sizes = {c.images, c.height, c.width, c.channels};
    const ConvWindows &w = c.windows;
    const HostTensor grad =
        withRandom(emptyTensor(dtype, {c.images, w.result[0], w.result[1], c.channels}), 8);
    const auto ints = numbers.ints();
    const HostTensor dx = launch({.kernel = named("pool_backward", dtype),
                                  .blocks = maxPoolBackwardBlocks(uint64_t(c.elements())),
                                  .threads = kImageThreads,
                                  .reads = {tensor(dtype, sizes, x), grad},
                                  .writes = {emptyTensor(dtype, sizes)},
                                  .ints = numbersOf({ints.begin(), ints.end()}, w)})[0];
    std::vector<double> sums(size_t(c.elements()));
    for (uint64_t i = 0; i < grad.elements(); ++i) {
      int64_t count = 0, place = -1;
      forPixels(c, i, [&](int64_t v, int64_t u, int64_t) {
        const int64_t at = elementAt(c, i, v, u);
        ++count;
        if (place < 0 || x[size_t(at)] > x[size_t(place)] || std::isnan(x[size_t(at)]))
          place = at;
      });
      if (numbers.kind == int64_t(PoolKind::Max) && place >= 0)
        sums[size_t(place)] += grad.at(i);
      else if (numbers.kind != int64_t(PoolKind::Max))
        forPixels(c, i, [&](int64_t v, int64_t u, int64_t) {
          sums[size_t(elementAt(c, i, v, u))] += grad.at(i) / divisorOf(c, numbers, i, count);
        });
    }
    expectNear(dx, [&](uint64_t i) { return sums[i]; }, 0, /*absolute=*/4e-6);
  }

  /// What the sum of the window of result `i`, with `count` pixels of the image, is divided by.
  static double divisorOf(const ImageCase &c, const PoolNumbers &numbers, uint64_t i,
                          int64_t count) {
    const ConvWindows &w = c.windows;
    // A window that the image's padding cuts off has fewer elements.
    const auto extent = [&](int64_t at, int d, int64_t size) {
      const int64_t begin = at * w.stride[d] - w.padding[d];
      return double(std::min(begin + w.kernel[d], size + w.padding[d]) - begin);
    };
    const int64_t window = int64_t(i) / c.channels;
    return numbers.divisor != 0         ? double(numbers.divisor)
           : numbers.countsPadding != 0 ? extent(window / w.result[1] % w.result[0], 0, c.height) *
                                              extent(window % w.result[1], 1, c.width)
                                        : double(count);
  }
};
CGC_ON_ALL_EXECUTORS(Images);

const ImageCase kPools[] = {
    caseOf(2, {9, 8}, 16, {2, 2}, {2, 2}, {0, 0}),
    caseOf(1, {9, 8}, 7, {3, 2}, {2, 1}, {1, 1}),
    caseOf(2, {8, 8}, 24, {3, 3}, {2, 2}, {1, 1}, {1, 1}, /*more=*/1),
    caseOf(1, {5, 6}, 8, {5, 6}, {1, 1}, {0, 0}),
    caseOf(2, {6, 7}, 8, {1, 1}, {2, 2}, {0, 0}),
};
constexpr PoolNumbers kPoolNumbers[] = {{0, 1, 0}, {0, 0, 0}, {0, 1, -3}, {1, 1, 0}};

/// Of each form that the kernel has code for, and others; with strips that end in a row, channels
/// that end in a group of 64, and windows outside of the image.
TEST_P(Images, DepthwiseConvolutions) {
  const ImageCase cases[] = {
      caseOf(2, {9, 21}, 66, {7, 7}, {1, 1}, {3, 3}),
      caseOf(1, {6, 5}, 8, {5, 5}, {1, 1}, {2, 2}),
      caseOf(2, {8, 8}, 130, {3, 3}, {1, 1}, {1, 1}),
      caseOf(1, {11, 12}, 64, {3, 3}, {2, 2}, {1, 1}),
      caseOf(1, {10, 9}, 6, {3, 5}, {2, 1}, {0, 2}, {2, 1}),
      caseOf(3, {1, 1}, 2, {3, 3}, {1, 1}, {1, 1}),
      caseOf(1, {5, 5}, 10, {11, 11}, {1, 1}, {5, 5}),
      caseOf(1, {7, 6}, 4, {2, 2}, {3, 3}, {4, 0}),
      caseOf(2, {5, 9}, 12, {1, 1}, {1, 1}, {0, 0}),
      withOutputs(caseOf(1, {12, 20}, 34, {7, 7}, {2, 2}, {3, 3}), 68),
      withOutputs(caseOf(2, {6, 9}, 6, {3, 3}, {1, 1}, {1, 1}), 24),
      withOutputs(caseOf(1, {6, 9}, 4, {2, 3}, {1, 1}, {1, 1}), 8),
      // Enough images for several rows of each warp, and for several tiles of each CTA.
      caseOf(700, {5, 9}, 6, {7, 7}, {1, 1}, {3, 3}),
      caseOf(300, {6, 9}, 66, {3, 3}, {1, 1}, {1, 1}),
      caseOf(110, {17, 9}, 66, {3, 3}, {1, 1}, {1, 1}), // The last warps have no rows.
      caseOf(200, {6, 9}, 66, {3, 3}, {1, 1}, {1, 1}),  // Two rows for each warp.
      caseOf(700, {9, 17}, 8, {3, 3}, {2, 2}, {1, 1}),
      withOutputs(caseOf(700, {9, 17}, 6, {7, 7}, {2, 2}, {3, 3}), 12),
      caseOf(700, {5, 9}, 8, {5, 5}, {1, 1}, {2, 2}),
      caseOf(700, {5, 9}, 10, {4, 4}, {1, 1}, {2, 1}),
  };
  for (const DType dtype : kHalves) {
    int step = 0;
    for (const ImageCase &c : cases) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + " case " + std::to_string(step));
      checkDepthwise(dtype, c, Activation(step % kNumActivations), step % 2 == 0, step % 3 == 0);
      ++step;
      checkDepthwise(dtype, c, Activation::None, step % 2 == 0, step % 3 == 0);
      if (HasFatalFailure())
        return;
    }
  }
}

/// Widths and heights that no CTA divides, channels of the result that end in each group, windows
/// of one and of many steps of products, and windows outside of the image.
TEST_P(Images, ConvolutionsOfFewChannels) {
  const ImageCase cases[] = {
      withOutputs(caseOf(2, {37, 45}, 3, {3, 3}, {2, 2}, {1, 1}), 32),
      withOutputs(caseOf(1, {19, 70}, 3, {7, 7}, {2, 2}, {3, 3}), 64),
      withOutputs(caseOf(1, {9, 9}, 1, {1, 1}, {1, 1}, {2, 0}), 8),
      withOutputs(caseOf(2, {10, 33}, 4, {4, 4}, {4, 4}, {0, 0}), 136),
      withOutputs(caseOf(1, {12, 14}, 5, {2, 5}, {1, 3}, {4, 1}, {3, 2}), 40),
      withOutputs(caseOf(3, {1, 1}, 7, {6, 6}, {1, 1}, {3, 3}), 72),
      // Several tiles for each CTA, with lines that are whole vectors.
      withOutputs(caseOf(300, {6, 16}, 3, {3, 3}, {2, 2}, {1, 1}), 8),
  };
  for (const DType dtype : kHalves) {
    int step = 0;
    for (const ImageCase &c : cases) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + " case " + std::to_string(step));
      checkStem(dtype, c, Activation(step % kNumActivations), step % 3 != 0, true);
      checkStem(dtype, c, Activation::None, step % 3 == 0, false);
      ++step;
      if (HasFatalFailure())
        return;
    }
  }
}

/// A pixel that is not a number is in no other window's result.
TEST_P(Images, ConvolutionsOfFewChannelsAndNaN) {
  ImageCase c = withOutputs(caseOf(1, {9, 9}, 3, {3, 3}, {1, 1}, {1, 1}), 8);
  std::vector<double> x(size_t(c.elements()), 1.0);
  x[size_t((4 * 9 + 4) * 3 + 1)] = NAN;
  const StemShape shape = StemShape::of(c.windows, c.channels);
  const auto grid = shape.grid(1, 8);
  const HostTensor y = launch(
      {.kernel = "stem_conv_f16",
       .blocks = uint64_t(grid[0]),
       .threads = kImageThreads,
       .reads = {tensor(DType::F16, {1, 9, 9, 3}, x),
                 tensor(DType::F16, {8, 3, 3, 3}, std::vector<double>(8 * 27, 1.0)), std::nullopt},
       .writes = {emptyTensor(DType::F16, {1, 9, 9, 8})},
       .ints = numbersOf({0}, c.windows),
       .blocksY = uint32_t(grid[1]),
       .sharedBytes = uint32_t(shape.sharedBytes())})[0];
  for (uint64_t i = 0; i < y.elements(); ++i) {
    const uint64_t row = i / 72, column = i / 8 % 9;
    EXPECT_EQ(std::isnan(y.at(i)), row - 3 < 3 && column - 3 < 3) << "element " << i;
  }
}

TEST_P(Images, AveragesAndMaximaOfWindows) {
  for (const DType dtype : kFloats)
    for (const ImageCase &c : kPools)
      for (const PoolNumbers &numbers : kPoolNumbers) {
        const HostTensor x =
            withRandom(emptyTensor(dtype, {c.images, c.height, c.width, c.channels}), 5);
        expectNear(
            pool(dtype, c, x, numbers),
            [&](uint64_t i) {
              double sum = 0, most = -INFINITY;
              int64_t count = 0;
              forPixels(c, i, [&](int64_t v, int64_t u, int64_t) {
                const double value = x.at(uint64_t(elementAt(c, i, v, u)));
                sum += value;
                most = std::max(most, value);
                ++count;
              });
              return numbers.kind == int64_t(PoolKind::Max) ? most
                     : count == 0                           ? 0.0
                                                            : sum / divisorOf(c, numbers, i, count);
            },
            0, /*absolute=*/1e-6);
        if (HasFatalFailure())
          return;
      }
}

/// Of images with equal numbers, of which the first in a window gets the gradient of a maximum.
/// With several tiles along each dimension, and windows that are too many or too large for tiles.
TEST_P(Images, GradientsOfPools) {
  std::vector<ImageCase> cases(std::begin(kPools), std::end(kPools));
  cases.push_back(caseOf(2, {35, 33}, 72, {3, 3}, {2, 2}, {1, 1}));
  cases.push_back(caseOf(1, {18, 33}, 8, {3, 3}, {1, 1}, {1, 1}));
  cases.push_back(caseOf(2, {33, 17}, 9, {2, 3}, {3, 2}, {0, 1}));
  cases.push_back(caseOf(1, {12, 19}, 8, {6, 5}, {1, 1}, {3, 2}));
  cases.push_back(caseOf(1, {20, 19}, 8, {17, 17}, {8, 8}, {8, 8}));
  for (const DType dtype : kFloats)
    for (const ImageCase &c : cases)
      for (const PoolNumbers &numbers : kPoolNumbers) {
        std::vector<double> x = test::numbers(dtype, c.elements(), 5);
        for (double &value : x)
          value = std::max(value, 0.0);
        checkPoolBackward(dtype, c, numbers, x);
        if (HasFatalFailure())
          return;
      }
}

TEST_P(Images, PoolsOfNaNAndOfDilatedWindows) {
  const ImageCase c = caseOf(1, {7, 7}, 8, {2, 3}, {1, 2}, {1, 1}, {3, 2});
  for (const DType dtype : kFloats) {
    std::vector<double> values = numbers(dtype, c.elements(), 6);
    values[17] = values[33] = NAN; // Of one window.
    const HostTensor x =
        withElements(emptyTensor(dtype, {1, c.height, c.width, c.channels}), values);
    const HostTensor y = pool(dtype, c, x, {1, 1, 0});
    for (uint64_t i = 0; i < y.elements(); ++i) {
      double most = -INFINITY;
      forPixels(c, i, [&](int64_t v, int64_t u, int64_t) {
        const double value = values[size_t(elementAt(c, i, v, u))];
        most = std::isnan(value) || std::isnan(most) ? NAN : std::max(most, value);
      });
      if (std::isnan(most))
        ASSERT_TRUE(std::isnan(y.at(i))) << "element " << i;
      else
        ASSERT_EQ(y.at(i), most) << "element " << i;
    }
    checkPoolBackward(dtype, c, {1, 1, 0}, values);
  }
}

} // namespace
} // namespace cgc::test
