// References of gemm_*, gemm_norm_* and conv_*, and of cuBLASLt's GEMM.
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/rowwise/reference_statistics.h"

namespace cgc::reference {
namespace {

/// Columns of a panel of W, and K steps that an accumulator adds at a time.
constexpr int64_t kPanel = 64, kDepth = 4;

/// A GEMM x[M,K] w[N,K]^T, whose operands may have rows that lie apart, or dense columns.
struct Gemm {
  TensorView x, w;
  int64_t m = x.sizes[0], n = w.sizes[0], k = x.sizes[1];
  int64_t steps = (k + kDepth - 1) / kDepth * kDepth; ///< K, padded with zeros.
};

int64_t rowStride(const TensorView &matrix) {
  return matrix.sizes[0] == 1 ? matrix.sizes[1] : strideOf(matrix, 0);
}

/// The distance of two elements of a row.
int64_t columnStride(const TensorView &matrix) {
  return matrix.sizes[1] == 1 ? 1 : strideOf(matrix, 1);
}

/// W as f32, transposed, in panels [N / kPanel, steps, kPanel], padded with zeros: the loop over a
/// panel's columns is vectorized.
template <class T> std::vector<float> panelsOf(const Gemm &g) {
  const int64_t panels = (g.n + kPanel - 1) / kPanel, stride = rowStride(g.w),
                step = columnStride(g.w);
  std::vector<float> values(panels * g.steps * kPanel);
  for (int64_t n = 0; n < g.n; ++n) {
    const T *const from = dataOf<T>(g.w) + n * stride;
    float *const to = values.data() + n / kPanel * g.steps * kPanel + n % kPanel;
    for (int64_t k = 0; k < g.k; ++k)
      to[k * kPanel] = toFloat(from[k * step]);
  }
  return values;
}

/// The accumulators of a row of x with one panel of W.
void multiply(const float *x, const float *panel, int64_t steps, float *accumulators) {
  float sums[kPanel] = {};
  for (int64_t k = 0; k < steps; k += kDepth) {
    const float *const w = panel + k * kPanel;
    for (int64_t n = 0; n < kPanel; ++n)
      sums[n] += (x[k] * w[n] + x[k + 1] * w[kPanel + n]) +
                 (x[k + 2] * w[2 * kPanel + n] + x[k + 3] * w[3 * kPanel + n]);
  }
  std::copy_n(sums, kPanel, accumulators);
}

/// Calls `epilogue(m, accumulators)` for each row of the result, with N accumulators in f32.
/// `readRow(m, to)` writes the K elements of row m of X.
template <class T, class X, class F> void forRows(const Gemm &g, X readRow, F epilogue) {
  const std::vector<float> panels = panelsOf<T>(g);
  constexpr int64_t kRows = 16; // Rows that use a panel while it is in a cache.
  const int64_t columns = (g.n + kPanel - 1) / kPanel * kPanel;
  std::vector<float> x(kRows * g.steps), accumulators(kRows * columns);
  for (int64_t first = 0; first < g.m; first += kRows) {
    const int64_t rows = std::min(kRows, g.m - first);
    for (int64_t row = 0; row < rows; ++row)
      readRow(first + row, x.data() + row * g.steps);
    for (int64_t n = 0; n < columns; n += kPanel)
      for (int64_t row = 0; row < rows; ++row)
        multiply(x.data() + row * g.steps, panels.data() + n * g.steps, g.steps,
                 accumulators.data() + row * columns + n);
    for (int64_t row = 0; row < rows; ++row)
      epilogue(first + row, accumulators.data() + row * columns);
  }
}

template <class T, class F> void forRows(const Gemm &g, F epilogue) {
  const int64_t stride = rowStride(g.x), step = columnStride(g.x);
  const auto readRow = [&](int64_t m, float *to) {
    for (int64_t k = 0; k < g.k; ++k)
      to[k] = toFloat(dataOf<T>(g.x)[m * stride + k * step]);
  };
  forRows<T>(g, readRow, epilogue);
}

/// Rounds each value to T, applies the activation and rounds again.
template <class T> void activate(Activation kind, float *values, int64_t count) {
  withActivation<T>(kind, [&](auto activation) {
    for (int64_t i = 0; i < count; ++i)
      values[i] = rounded<T>(activation(rounded<T>(values[i])));
  });
}

/// Stores row `m` of y, and its row statistics if requested.
template <class T>
void store(const TensorView &y, const TensorView &statistics, int64_t m, const float *values) {
  T *const to = resultOf<T>(y) + m * rowStride(y);
  storeRow(values, y.sizes[1], to);
  if (statistics.data)
    storeRowStatistics(to, m, y.sizes[1], resultOf<float>(statistics));
}

Activation activationOf(const ReferenceArguments &a) {
  return Activation(GemmNumbers::of(a.ints).activation);
}

template <class T> void gemm(const ReferenceArguments &a) {
  const Gemm g{a.reads[kGemmX], a.reads[kGemmW]};
  const TensorView &bias = a.reads[kGemmBias], &residual = a.reads[kGemmResidual];
  const Activation activation = activationOf(a);
  forRows<T>(g, [&](int64_t m, float *values) {
    if (bias.data)
      for (int64_t n = 0; n < g.n; ++n)
        values[n] += toFloat(dataOf<T>(bias)[n]);
    activate<T>(activation, values, g.n);
    if (residual.data) {
      const T *const more = dataOf<T>(residual) + m * rowStride(residual);
      const bool gates = GemmNumbers::of(a.ints).gates == 1;
      for (int64_t n = 0; n < g.n; ++n)
        values[n] = gates ? values[n] * toFloat(more[n]) : values[n] + toFloat(more[n]);
    }
    store<T>(a.writes[kGemmY], a.writes[kGemmYStatistics], m, values);
  });
}

template <class T> void conv(const ReferenceArguments &a) {
  const GemmNumbers numbers = GemmNumbers::of(a.ints);
  const ConvWindows windows = ConvWindows::of(a.ints);
  const TensorView &images = a.reads[kGemmX], &bias = a.reads[kGemmBias],
                   &residual = a.reads[kGemmResidual];
  const int64_t height = images.sizes[1], width = images.sizes[2], channels = images.sizes[3];
  const auto readWindow = [&](int64_t m, float *to) {
    const int64_t column = m % windows.result[1], line = m / windows.result[1];
    const int64_t top = line % windows.result[0] * windows.stride[0] - windows.padding[0],
                  left = column * windows.stride[1] - windows.padding[1],
                  image = line / windows.result[0];
    for (int64_t i = 0; i < windows.kernel[0]; ++i)
      for (int64_t j = 0; j < windows.kernel[1]; ++j, to += channels) {
        const int64_t y = top + i * windows.dilation[0], x = left + j * windows.dilation[1];
        std::fill_n(to, channels, 0.0f);
        if (y >= 0 && y < height && x >= 0 && x < width)
          for (int64_t c = 0; c < channels; ++c)
            to[c] = toFloat(dataOf<T>(images)[((image * height + y) * width + x) * channels + c]);
      }
  };
  const int64_t ofWindow = windows.kernel[0] * windows.kernel[1] * channels;
  const std::array<int64_t, 2> matrix = {numbers.n, ofWindow};
  TensorView w = a.reads[kGemmW];
  w.sizes = matrix;
  const Gemm g{images, w, numbers.m, numbers.n, ofWindow};
  forRows<T>(g, readWindow, [&](int64_t m, float *values) {
    if (bias.data)
      for (int64_t n = 0; n < g.n; ++n)
        values[n] += toFloat(dataOf<T>(bias)[n]);
    if (residual.data) {
      const T *const more = dataOf<T>(residual) + m * rowStride(residual);
      for (int64_t n = 0; n < g.n; ++n)
        values[n] = rounded<T>(values[n]) + toFloat(more[n]);
    }
    activate<T>(Activation(numbers.activation), values, g.n);
    store<T>(a.writes[kGemmY], a.writes[kGemmYStatistics], m, values);
  });
}

/// 1 / sqrt(variance + eps) of row `m` of x, from its row statistics.
float rstdOf(const TensorView &statistics, int64_t m, int64_t k, float eps) {
  const int64_t groups = statisticsGroups(k);
  const float *const row = dataOf<float>(statistics) + m * groups * 2;
  const float perColumn = 1 / static_cast<float>(k);
  const float mean = sumOf(groups, [&](int64_t g) { return row[2 * g]; }) * perColumn;
  const float squares = sumOf(groups, [&](int64_t g) { return row[2 * g + 1]; }) * perColumn;
  return 1 / std::sqrt(std::fmax(squares - mean * mean, 0.0f) + eps);
}

template <class T> void gemmNorm(const ReferenceArguments &a) {
  const Gemm g{a.reads[kGemmX], a.reads[kGemmW]};
  const TensorView &bias = a.reads[kGemmBias];
  const Activation activation = activationOf(a);
  const auto eps = static_cast<float>(a.floats[0]);
  forRows<T>(g, [&](int64_t m, float *values) {
    const float rstd = rstdOf(a.reads[kGemmXStatistics], m, g.k, eps);
    for (int64_t n = 0; n < g.n; ++n)
      values[n] = values[n] * rstd + (bias.data ? toFloat(dataOf<T>(bias)[n]) : 0);
    activate<T>(activation, values, g.n);
    store<T>(a.writes[kGemmY], a.writes[kGemmYStatistics], m, values);
  });
}

/// d = x w^T + bias + residual, or relu(x w^T + bias), rounded once. TF32 is computed as f32.
template <class T> void libraryGemm(const ReferenceArguments &a) {
  const Gemm g{a.reads[kGemmX], a.reads[kGemmW]};
  const TensorView &bias = a.reads[kGemmBias], &residual = a.reads[kGemmResidual];
  const bool relu = a.ints[0] == 1;
  forRows<T>(g, [&](int64_t m, float *values) {
    for (int64_t n = 0; n < g.n; ++n) {
      if (bias.data)
        values[n] += toFloat(dataOf<T>(bias)[n]);
      if (relu)
        values[n] = maxOrNan(values[n], 0);
      if (residual.data)
        values[n] += toFloat(dataOf<T>(residual)[m * rowStride(residual) + n]);
    }
    if (a.writes[kGemmY].dtype == DType::F32)
      store<float>(a.writes[kGemmY], {}, m, values);
    else
      store<T>(a.writes[kGemmY], {}, m, values);
  });
}

} // namespace

/// Reads as GemmRead; writes d and a workspace; ints relu and tf32 (runtime/plan/gemm_call.h).
void cublasLtMatmulReference(const ReferenceArguments &arguments) {
  switch (arguments.reads[0].dtype) {
  case DType::F16:
    return libraryGemm<F16>(arguments);
  case DType::BF16:
    return libraryGemm<BF16>(arguments);
  default:
    return libraryGemm<float>(arguments);
  }
}

// All tiles of a family compute the same.
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_REFERENCE(gemm_f16_##N##x##M##_##SPLIT_K, gemm<F16>)                                         \
  CGC_REFERENCE(gemm_bf16_##N##x##M##_##SPLIT_K, gemm<BF16>)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_REFERENCE(gemm_f16_128x##M##_persistent, gemm<F16>)                                          \
  CGC_REFERENCE(gemm_bf16_128x##M##_persistent, gemm<BF16>)
#include "runtime/kernels/gemm/tiles.def"
#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_REFERENCE(gemm_f16_##N##x##M##_mma, gemm<F16>)                                               \
  CGC_REFERENCE(gemm_bf16_##N##x##M##_mma, gemm<BF16>)
#include "runtime/kernels/gemm/mma_tiles.def"
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_REFERENCE(gemm_norm_f16_##N##x##M##_##SPLIT_K, gemmNorm<F16>)                                \
  CGC_REFERENCE(gemm_norm_bf16_##N##x##M##_##SPLIT_K, gemmNorm<BF16>)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_REFERENCE(gemm_norm_f16_128x##M##_persistent, gemmNorm<F16>)                                 \
  CGC_REFERENCE(gemm_norm_bf16_128x##M##_persistent, gemmNorm<BF16>)
#include "runtime/kernels/gemm/norm_tiles.def"
#define CGC_GEMM_MMA(N, M)                                                                         \
  CGC_REFERENCE(gemm_norm_f16_##N##x##M##_mma, gemmNorm<F16>)                                      \
  CGC_REFERENCE(gemm_norm_bf16_##N##x##M##_mma, gemmNorm<BF16>)
#include "runtime/kernels/gemm/mma_tiles.def"
#define CGC_GEMM_TILE(N, M, SPLIT_K, CTAS)                                                         \
  CGC_REFERENCE(conv_f16_##N##x##M##_##SPLIT_K, conv<F16>)                                         \
  CGC_REFERENCE(conv_bf16_##N##x##M##_##SPLIT_K, conv<BF16>)
#define CGC_GEMM_PERSISTENT(M)                                                                     \
  CGC_REFERENCE(conv_f16_128x##M##_persistent, conv<F16>)                                          \
  CGC_REFERENCE(conv_bf16_128x##M##_persistent, conv<BF16>)
#include "runtime/kernels/gemm/conv_tiles.def"

} // namespace cgc::reference
