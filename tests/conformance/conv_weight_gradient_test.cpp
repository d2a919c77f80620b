// conv_weight_gradient and sum_parts against double precision: odd geometries, both kernels, and
// several splits.
#include "runtime/kernels/gemm/conv_weight_gradient.h"
#include "tests/conformance/gemm_numbers.h"

namespace cgc::test {
namespace {

struct WeightGradientCase {
  int64_t images, height, width, channels, results;
  ConvWindows windows;
};

WeightGradientCase caseOf(int64_t images, std::array<int64_t, 2> sizes, int64_t channels,
                          int64_t results, std::array<int64_t, 2> kernel,
                          std::array<int64_t, 2> stride, std::array<int64_t, 2> padding,
                          std::array<int64_t, 2> dilation = {1, 1}) {
  ConvWindows windows{kernel, stride, padding, dilation, {}};
  for (const int i : {0, 1})
    windows.result[i] =
        (sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  return {images, sizes[0], sizes[1], channels, results, windows};
}

class ConvWeightGradient : public HopperGemmTest {
protected:
  HostTensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double> &values) {
    return withElements(emptyTensor(dtype, std::move(sizes)), values);
  }

  /// The parts of the splits, then their sum.
  std::vector<HostTensor> results(DType dtype, const WeightGradientCase &c, int64_t splits,
                                  const std::vector<double> &grad,
                                  const std::vector<double> &image) {
    const ConvWindows &w = c.windows;
    const int64_t all = c.images * w.result[0] * w.result[1], pixels = w.kernel[0] * w.kernel[1];
    const auto shape = WeightGradientShape::of(all, c.results, pixels, c.channels);
    std::vector<int64_t> ints = {splits};
    std::ranges::copy(w.ints(), std::back_inserter(ints));
    const std::vector<int64_t> sizes = {splits, c.results, w.kernel[0], w.kernel[1], c.channels};
    const HostTensor parts = launch(
        {.kernel = named("conv_weight_gradient", dtype) + (shape.warpgroups == 1 ? "_64" : "_128"),
         .blocks = uint64_t(shape.columnTiles),
         .threads = shape.threads(),
         .reads = {tensor(dtype, {all, c.results}, grad),
                   tensor(dtype, {c.images, c.height, c.width, c.channels}, image)},
         .writes = {emptyTensor(DType::F32, sizes)},
         .ints = ints,
         .blocksY = uint32_t(shape.rowTiles),
         .blocksZ = uint32_t(splits),
         .sharedBytes = shape.sharedBytes()})[0];
    const int64_t elements = c.results * pixels * c.channels;
    const HostTensor sum =
        launch({.kernel = "sum_parts_f32",
                .blocks = sumPartsBlocks(uint64_t(elements)),
                .threads = kSumPartsThreads,
                .reads = {parts},
                .writes = {emptyTensor(DType::F32, {sizes.begin() + 1, sizes.end()})}})[0];
    return {parts, sum};
  }

  void check(DType dtype, const WeightGradientCase &c, int64_t splits) {
    const ConvWindows &w = c.windows;
    const int64_t all = c.images * w.result[0] * w.result[1], pixels = w.kernel[0] * w.kernel[1];
    const std::vector<double> grad = numbers(dtype, all * c.results, 1),
                              image = numbers(dtype, c.images * c.height * c.width * c.channels, 2);
    const HostTensor sum = results(dtype, c, splits, grad, image)[1];
    for (uint64_t i = 0; i < sum.elements() && !HasFatalFailure(); ++i) {
      const int64_t channel = int64_t(i) % c.channels, pixel = int64_t(i) / c.channels % pixels,
                    result = int64_t(i) / c.channels / pixels;
      double expected = 0, magnitude = 0;
      for (int64_t m = 0; m < all; ++m) {
        const int64_t line = m / w.result[1],
                      y = line % w.result[0] * w.stride[0] - w.padding[0] +
                          pixel / w.kernel[1] * w.dilation[0],
                      x = m % w.result[1] * w.stride[1] - w.padding[1] +
                          pixel % w.kernel[1] * w.dilation[1];
        if (y < 0 || y >= c.height || x < 0 || x >= c.width)
          continue;
        const double term =
            grad[size_t(m * c.results + result)] *
            image[size_t(((line / w.result[0] * c.height + y) * c.width + x) * c.channels +
                         channel)];
        expected += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(sum.at(i), expected, magnitude * 0x1p-18 + 1e-6) << "element " << i;
    }
  }
};
CGC_ON_ALL_EXECUTORS(ConvWeightGradient);

/// Strides, dilation, groups of fewer than 64 channels and results, tiles that end within them,
/// images that end within a step, and windows that lie outside of the image.
TEST_P(ConvWeightGradient, OddGeometries) {
  const WeightGradientCase cases[] = {
      caseOf(2, {9, 7}, 64, 64, {3, 3}, {1, 1}, {1, 1}),
      caseOf(3, {8, 8}, 128, 136, {3, 3}, {1, 1}, {1, 1}),
      caseOf(3, {10, 12}, 8, 32, {3, 3}, {2, 2}, {1, 1}),
      caseOf(2, {11, 6}, 40, 8, {5, 2}, {3, 1}, {0, 2}, {1, 2}),
      caseOf(5, {4, 4}, 200, 72, {1, 1}, {1, 1}, {0, 0}),
      caseOf(2, {3, 5}, 16, 24, {7, 7}, {1, 1}, {3, 3}),
      caseOf(1, {1, 1}, 8, 8, {3, 3}, {1, 1}, {4, 4}, {3, 3}),
      caseOf(1, {24, 20}, 72, 264, {4, 4}, {4, 2}, {0, 1}, {2, 1}),
  };
  for (const DType dtype : kHalves)
    for (const WeightGradientCase &c : cases) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + " case " + std::to_string(&c - cases));
      const ConvWindows &w = c.windows;
      const auto shape = WeightGradientShape::of(c.images * w.result[0] * w.result[1], c.results,
                                                 w.kernel[0] * w.kernel[1], c.channels);
      for (const int64_t splits : {int64_t(1), shape.steps})
        check(dtype, c, splits);
      if (HasFatalFailure())
        return;
    }
}

/// More steps than stages in each split, which are not of equal length.
TEST_P(ConvWeightGradient, ManySteps) {
  for (const DType dtype : kHalves)
    for (const int64_t results : {64, 128})
      check(dtype, caseOf(5, {13, 12}, 64, results, {3, 3}, {1, 1}, {1, 1}), 2);
}

/// The sums of a launch are the same bits as those of another.
TEST_P(ConvWeightGradient, IsEqualBitByBitWhenRepeated) {
  const WeightGradientCase c = caseOf(4, {14, 14}, 64, 128, {3, 3}, {1, 1}, {1, 1});
  const std::vector<double> grad = numbers(DType::BF16, 4 * 14 * 14 * 128, 1),
                            image = numbers(DType::BF16, 4 * 14 * 14 * 64, 2);
  EXPECT_EQ(results(DType::BF16, c, 4, grad, image)[1].bytes,
            results(DType::BF16, c, 4, grad, image)[1].bytes);
}

} // namespace
} // namespace cgc::test
