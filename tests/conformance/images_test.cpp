// depthwise_conv and pool against double precision: odd geometries, every activation, ceil mode,
// and NaN.
#include "runtime/kernels/images/images.h"
#include "tests/conformance/gemm_numbers.h"

namespace cgc::test {
namespace {

struct ImageCase {
  int64_t images, height, width, channels;
  ConvWindows windows;

  int64_t elements() const { return images * height * width * channels; }
  int64_t results() const { return images * windows.result[0] * windows.result[1] * channels; }
};

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
  const auto window = int64_t(i) / c.channels, column = window % w.result[1],
             row = window / w.result[1] % w.result[0];
  for (int64_t j = 0; j < w.kernel[0]; ++j)
    for (int64_t k = 0; k < w.kernel[1]; ++k) {
      const int64_t y = row * w.stride[0] - w.padding[0] + j * w.dilation[0],
                    x = column * w.stride[1] - w.padding[1] + k * w.dilation[1];
      if (y >= 0 && y < c.height && x >= 0 && x < c.width)
        f(y, x, j * w.kernel[1] + k);
    }
}

/// The element of the images that result `i` reads at a pixel.
int64_t elementAt(const ImageCase &c, uint64_t i, int64_t y, int64_t x) {
  const int64_t image = int64_t(i) / (c.windows.result[0] * c.windows.result[1] * c.channels);
  return ((image * c.height + y) * c.width + x) * c.channels + int64_t(i) % c.channels;
}

std::vector<int64_t> numbersOf(std::vector<int64_t> first, const ConvWindows &windows) {
  std::ranges::copy(windows.ints(), std::back_inserter(first));
  return first;
}

class Images : public KernelTest {
protected:
  void checkDepthwise(DType dtype, const ImageCase &c, Activation activation, bool hasBias,
                      bool hasResidual) {
    const int64_t taps = c.windows.kernel[0] * c.windows.kernel[1];
    const std::vector<double> x = numbers(dtype, c.elements(), 1),
                              w = numbers(dtype, c.channels * taps, 2, 0.3),
                              bias = numbers(dtype, c.channels, 3),
                              residual = numbers(dtype, c.results(), 4);
    const std::vector<int64_t> sizes = {c.images, c.height, c.width, c.channels},
                               result = {c.images, c.windows.result[0], c.windows.result[1],
                                         c.channels};
    const auto tensor = [&](std::vector<int64_t> of, const std::vector<double> &values) {
      return withElements(emptyTensor(dtype, std::move(of)), values);
    };
    const auto grid = depthwiseGrid(c.images, c.windows, c.channels);
    Launch launch{
        .kernel = named("depthwise_conv", dtype),
        .blocks = grid[0],
        .threads = kImageThreads,
        .reads = {tensor(sizes, x), tensor({c.channels, taps}, w), std::nullopt, std::nullopt},
        .writes = {emptyTensor(dtype, result)},
        .ints = numbersOf({int64_t(activation)}, c.windows),
        .blocksY = grid[1]};
    if (hasBias)
      launch.reads[2] = tensor({c.channels}, bias);
    if (hasResidual)
      launch.reads[3] = tensor(result, residual);
    const HostTensor y = this->launch(launch)[0];
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      double sum = hasBias ? bias[i % uint64_t(c.channels)] : 0, magnitude = std::abs(sum);
      forPixels(c, i, [&](int64_t v, int64_t u, int64_t tap) {
        const double term = x[elementAt(c, i, v, u)] * w[int64_t(i) % c.channels * taps + tap];
        sum += term;
        magnitude += std::abs(term);
      });
      double error = magnitude * 0x1p-20;
      const auto round = [&] {
        error += rounding(dtype) * (std::abs(sum) + error) + smallest(dtype);
      };
      round();
      if (hasResidual) {
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
};
CGC_ON_ALL_EXECUTORS(Images);

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

TEST_P(Images, AveragesAndMaximaOfWindows) {
  const ImageCase cases[] = {
      caseOf(2, {9, 8}, 16, {2, 2}, {2, 2}, {0, 0}),
      caseOf(1, {9, 8}, 7, {3, 2}, {2, 1}, {1, 1}),
      caseOf(2, {8, 8}, 24, {3, 3}, {2, 2}, {1, 1}, {1, 1}, /*more=*/1),
      caseOf(1, {5, 6}, 8, {5, 6}, {1, 1}, {0, 0}),
  };
  for (const DType dtype : kFloats)
    for (const ImageCase &c : cases)
      for (const PoolNumbers numbers : {PoolNumbers{0, 1, 0}, PoolNumbers{0, 0, 0},
                                        PoolNumbers{0, 1, -3}, PoolNumbers{1, 1, 0}}) {
        const HostTensor x =
            withRandom(emptyTensor(dtype, {c.images, c.height, c.width, c.channels}), 5);
        const ConvWindows &w = c.windows;
        expectNear(
            pool(dtype, c, x, numbers),
            [&](uint64_t i) {
              double sum = 0, most = -INFINITY, count = 0;
              forPixels(c, i, [&](int64_t v, int64_t u, int64_t) {
                const double value = x.at(uint64_t(elementAt(c, i, v, u)));
                sum += value;
                most = std::max(most, value);
                ++count;
              });
              if (numbers.kind == int64_t(PoolKind::Max))
                return most;
              // A window that the image's padding cuts off has fewer elements.
              const auto extent = [&](int64_t at, int d, int64_t size) {
                const int64_t begin = at * w.stride[d] - w.padding[d];
                return double(std::min(begin + w.kernel[d], size + w.padding[d]) - begin);
              };
              const int64_t window = int64_t(i) / c.channels;
              const double all = extent(window / w.result[1] % w.result[0], 0, c.height) *
                                 extent(window % w.result[1], 1, c.width);
              return count == 0 ? 0.0
                                : sum / (numbers.divisor != 0         ? double(numbers.divisor)
                                         : numbers.countsPadding != 0 ? all
                                                                      : count);
            },
            0, /*absolute=*/1e-6);
        if (HasFatalFailure())
          return;
      }
}

TEST_P(Images, PoolsOfNaNAndOfDilatedWindows) {
  const ImageCase c = caseOf(1, {7, 7}, 8, {2, 3}, {1, 2}, {1, 1}, {3, 2});
  for (const DType dtype : kFloats) {
    std::vector<double> values = numbers(dtype, c.elements(), 6);
    values[17] = NAN;
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
  }
}

} // namespace
} // namespace cgc::test
