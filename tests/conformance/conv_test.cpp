// conv with every tile against double precision: odd geometries, all options of a launch, and row
// statistics.
#include "tests/conformance/gemm_numbers.h"
#include "tests/conformance/row_statistics_reference.h"

namespace cgc::test {
namespace {

/// Images, and the windows that a convolution reads of them.
struct Geometry {
  int64_t images, height, width, channels, outputs;
  ConvWindows windows;

  int64_t m() const { return images * windows.result[0] * windows.result[1]; }
  int64_t pixels() const { return windows.kernel[0] * windows.kernel[1]; }
};

Geometry geometryOf(int64_t images, std::array<int64_t, 2> sizes, int64_t channels, int64_t outputs,
                    std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                    std::array<int64_t, 2> padding, std::array<int64_t, 2> dilation) {
  ConvWindows windows{kernel, stride, padding, dilation, {}};
  for (const int i : {0, 1})
    windows.result[i] =
        (sizes[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  return {images, sizes[0], sizes[1], channels, outputs, windows};
}

/// The operands as those of the GEMM of the windows with W.
struct ConvNumbers {
  Geometry geometry;
  std::vector<double> images;
  Numbers gemm;

  ConvNumbers(DType dtype, const Geometry &g)
      : ConvNumbers(dtype, g, numbers(dtype, g.images * g.height * g.width * g.channels, 1)) {}
  ConvNumbers(DType dtype, const Geometry &g, std::vector<double> pixels)
      : geometry(g), images(std::move(pixels)),
        gemm(dtype, g.m(), g.outputs, g.pixels() * g.channels, windowsOf(g, images)) {}

private:
  static std::vector<double> windowsOf(const Geometry &g, const std::vector<double> &images) {
    const ConvWindows &w = g.windows;
    std::vector<double> rows;
    for (int64_t m = 0; m < g.m(); ++m)
      for (int64_t i = 0; i < w.kernel[0]; ++i)
        for (int64_t j = 0; j < w.kernel[1]; ++j) {
          const int64_t image = m / (w.result[0] * w.result[1]);
          const int64_t y = m / w.result[1] % w.result[0] * w.stride[0] - w.padding[0] +
                            i * w.dilation[0],
                        x = m % w.result[1] * w.stride[1] - w.padding[1] + j * w.dilation[1];
          const bool isInside = y >= 0 && y < g.height && x >= 0 && x < g.width;
          for (int64_t c = 0; c < g.channels; ++c)
            rows.push_back(
                isInside ? images[((image * g.height + y) * g.width + x) * g.channels + c] : 0);
        }
    return rows;
  }
};

class Conv : public HopperGemmTest {
protected:
  static Launch launchOf(const GemmTile &tile, const ConvNumbers &p, const Variant &v) {
    const Geometry &g = p.geometry;
    const ConvWindows &w = g.windows;
    Launch launch = GemmKernelTest::launchOf("conv", tile, p.gemm, v);
    launch.reads[kGemmX] = withElements(
        emptyTensor(p.gemm.dtype, {g.images, g.height, g.width, g.channels}), p.images);
    launch.reads[kGemmW] = withElements(
        emptyTensor(p.gemm.dtype, {g.outputs, w.kernel[0], w.kernel[1], g.channels}), p.gemm.w);
    launch.ints[2] = convK(w, g.channels);
    for (const int64_t number : w.ints())
      launch.ints.push_back(number);
    return launch;
  }

  void check(const GemmTile &tile, const ConvNumbers &p, const Variant &v) {
    SCOPED_TRACE(describe(p.gemm, v) + " tile " + std::string(tile.name));
    const HostTensor y = launch(launchOf(tile, p, v))[0];
    const Numbers &of = p.gemm;
    for (uint64_t i = 0; i < y.elements() && !HasFatalFailure(); ++i) {
      const double sum = of.sums[i] + (v.bias ? of.bias[i % of.n] : 0);
      expectElement(y, i, of, v, sum, summing(of) * (of.magnitudes[i] + std::abs(sum)),
                    /*residualFirst=*/true);
    }
  }
};
CGC_ON_ALL_EXECUTORS(Conv);

/// Strides, dilation, also a negative one, borders on one side alone, groups of fewer than 64
/// channels, windows that lie outside of the image, and one pixel.
TEST_P(Conv, OddGeometries) {
  const Geometry geometries[] = {
      geometryOf(2, {9, 7}, 64, 72, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      geometryOf(1, {14, 14}, 128, 264, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      geometryOf(3, {10, 12}, 8, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}),
      geometryOf(2, {11, 6}, 40, 8, {5, 2}, {3, 1}, {0, 2}, {1, 2}),
      geometryOf(1, {7, 7}, 96, 64, {1, 1}, {2, 2}, {0, 0}, {1, 1}),
      geometryOf(5, {4, 4}, 200, 136, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      geometryOf(2, {3, 5}, 16, 24, {7, 7}, {1, 1}, {3, 3}, {1, 1}),
      geometryOf(1, {1, 1}, 8, 8, {3, 3}, {1, 1}, {4, 4}, {3, 3}),
      geometryOf(1, {24, 20}, 72, 64, {4, 4}, {4, 2}, {0, 1}, {2, 1}),
      // The gradients of images: windows that go back from their first pixel.
      geometryOf(2, {9, 7}, 64, 72, {3, 3}, {1, 1}, {-1, -1}, {-1, -1}),
      geometryOf(1, {5, 6}, 40, 24, {3, 2}, {1, 1}, {-2, 0}, {-2, -1}),
      geometryOf(2, {8, 9}, 16, 8, {1, 4}, {1, 1}, {-2, -5}, {-1, -2}),
  };
  for (const DType dtype : kHalves) {
    unsigned step = 0;
    for (const Geometry &geometry : geometries) {
      const ConvNumbers numbers(dtype, geometry);
      for (const GemmTile &tile : convTiles()) {
        if (!tile.takes(convK(geometry.windows, geometry.channels)))
          continue;
        check(tile, numbers, variantOf(tile, step++));
        if (HasFatalFailure())
          return;
      }
    }
  }
}

TEST_P(Conv, EveryActivationWithAndWithoutBiasAndResidual) {
  for (const DType dtype : kHalves) {
    const ConvNumbers numbers(dtype,
                              geometryOf(2, {8, 9}, 72, 136, {3, 3}, {1, 1}, {1, 1}, {1, 1}));
    for (const GemmTile &tile : convTiles())
      for (int i = 0; i < kNumActivations; ++i) {
        const bool odd = i % 2 == 1;
        check(tile, numbers, {odd, !odd || i > 3, false, true, Activation(i), mostStages(tile)});
        if (HasFatalFailure())
          return;
      }
  }
}

/// Images that end within a tile, with more K steps than stages and CTAs with several tiles.
TEST_P(Conv, ManyTilesAndSteps) {
  for (const DType dtype : kHalves) {
    const ConvNumbers numbers(dtype,
                              geometryOf(5, {13, 11}, 192, 392, {3, 3}, {1, 1}, {1, 1}, {1, 1}));
    for (const GemmTile &tile : convTiles())
      for (const uint32_t stages : {2u, mostStages(tile)}) {
        check(tile, numbers, {true, true, false, true, Activation::Relu, stages});
        if (HasFatalFailure())
          return;
      }
  }
}

TEST_P(Conv, RowStatisticsOfWhatIsStored) {
  for (const DType dtype : kHalves) {
    const Geometry geometry = geometryOf(2, {12, 11}, 64, 264, {3, 3}, {1, 1}, {1, 1}, {1, 1});
    const ConvNumbers numbers(dtype, geometry);
    for (const GemmTile &tile : convTiles()) {
      SCOPED_TRACE(kernelOf("conv", tile, dtype));
      Launch launch =
          launchOf(tile, numbers, {true, true, false, true, Activation::Gelu, mostStages(tile)});
      launch.writes.push_back(emptyRowStatistics(geometry.m(), 264));
      const std::vector<HostTensor> results = this->launch(launch);
      expectRowStatisticsOf(results[0], geometry.m(), results[1]);
      if (HasFatalFailure())
        return;
    }
  }
}

} // namespace
} // namespace cgc::test
