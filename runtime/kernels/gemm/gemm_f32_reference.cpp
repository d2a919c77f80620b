// Reference of gemm_f32_*: all of them compute the same.
#include "runtime/kernels/gemm/gemm_f32.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

/// The rows of an operand [rows, k], dense.
std::vector<float> denseRows(const TensorView &matrix) {
  const int64_t rows = matrix.sizes[0], k = matrix.sizes[1];
  std::vector<float> values(rows * k);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < k; ++i)
      values[row * k + i] =
          dataOf<float>(matrix)[row * strideOf(matrix, 0) + i * strideOf(matrix, 1)];
  return values;
}

void gemmF32(const ReferenceArguments &arguments) {
  const int64_t m = arguments.ints[0], n = arguments.ints[1], k = arguments.ints[2];
  const std::vector<float> a = denseRows(arguments.reads[kGemmF32A]),
                           b = denseRows(arguments.reads[kGemmF32B]);
  const TensorView &bias = arguments.reads[kGemmF32Bias], &y = arguments.writes[kGemmF32Y],
                   &sums = arguments.writes[kGemmF32Sums];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j)
      resultOf<float>(y)[i * strideOf(y, 0) + j] =
          sumOf(k, [&](int64_t c) { return a[i * k + c] * b[j * k + c]; }) +
          (bias.data ? dataOf<float>(bias)[j] : 0);
    if (sums.data)
      resultOf<float>(sums)[i] = sumOf(k, [&](int64_t c) { return a[i * k + c]; });
  }
}

void gemmSgdF32(const ReferenceArguments &arguments) {
  const int64_t m = arguments.ints[0], n = arguments.ints[1], k = arguments.ints[2];
  const std::vector<float> a = denseRows(arguments.reads[kGemmSgdA]),
                           b = denseRows(arguments.reads[kGemmSgdB]);
  const float lr = *dataOf<float>(arguments.reads[kGemmSgdLr]), decay = float(arguments.floats[0]);
  const auto update = [&](size_t read, size_t write, int64_t i, float gradient) {
    const float value = dataOf<float>(arguments.reads[read])[i];
    resultOf<float>(arguments.writes[write])[i] = value - lr * (gradient + decay * value);
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j)
      update(kGemmSgdWeight, kGemmSgdNewWeight, i * n + j,
             sumOf(k, [&](int64_t c) { return a[i * k + c] * b[j * k + c]; }));
    if (arguments.writes[kGemmSgdNewBias].data)
      update(kGemmSgdBias, kGemmSgdNewBias, i, sumOf(k, [&](int64_t c) { return a[i * k + c]; }));
  }
  if (arguments.writes[kGemmSgdNewSteps].data)
    *resultOf<int64_t>(arguments.writes[kGemmSgdNewSteps]) =
        *dataOf<int64_t>(arguments.reads[kGemmSgdSteps]) + 1;
}

} // namespace

CGC_REFERENCE(gemm_f32_1, gemmF32)
CGC_REFERENCE(gemm_f32_2, gemmF32)
CGC_REFERENCE(gemm_f32_3, gemmF32)
CGC_REFERENCE(gemm_f32_4, gemmF32)
CGC_REFERENCE(gemm_f32_5, gemmF32)
CGC_REFERENCE(gemm_f32_6, gemmF32)
CGC_REFERENCE(gemm_f32_7, gemmF32)
CGC_REFERENCE(gemm_f32_8, gemmF32)

CGC_REFERENCE(gemm_sgd_f32_1, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_2, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_3, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_4, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_5, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_6, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_7, gemmSgdF32)
CGC_REFERENCE(gemm_sgd_f32_8, gemmSgdF32)

} // namespace cgc::reference
