// References of layer_norm_statistics_*, layer_norm_backward_* and layer_norm_parameters_f32.
#include "runtime/kernels/reference_elements.h"
#include "runtime/kernels/rowwise/layer_norm_train.h"

#include <cmath>

namespace cgc::reference {
namespace {

/// Row `row` of a matrix of f32; null if the tensor is absent.
const float *rowOf(const TensorView &tensor, int64_t row, int64_t columns) {
  return tensor.data ? dataOf<float>(tensor) + row * columns : nullptr;
}

template <class T> void normStatistics(const ReferenceArguments &a) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  const auto eps = static_cast<float>(a.floats[0]), count = static_cast<float>(columns);
  const float *const weight = rowOf(a.reads[1], 0, columns), *const bias =
                                                                 rowOf(a.reads[2], 0, columns);
  const TensorView &addend = a.reads[3];
  std::vector<float> x(columns), more(columns);
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(rowOf(a.reads[0], row, columns), columns, x.data());
    if (addend.data) {
      if (addend.dtype == DType::F32)
        loadRow(rowOf(addend, row, columns), columns, more.data());
      else
        loadRow(dataOf<T>(addend) + row * columns, columns, more.data());
      for (int64_t i = 0; i < columns; ++i)
        x[i] += more[i];
      storeRow(x.data(), columns, resultOf<float>(a.writes[3]) + row * columns);
    }
    const float mean = sumOf(columns, [&](int64_t i) { return x[i]; }) / count;
    const float variance =
        sumOf(columns, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
    const float rstd = 1 / std::sqrt(variance + eps);
    for (int64_t i = 0; i < columns; ++i)
      resultOf<T>(a.writes[0])[row * columns + i] =
          fromFloat<T>((x[i] - mean) * rstd * (weight ? weight[i] : 1) + (bias ? bias[i] : 0));
    resultOf<float>(a.writes[1])[row] = mean;
    resultOf<float>(a.writes[2])[row] = rstd;
  }
}

/// Adds each row to the sums of the CTA that has it.
template <class T> void normBackward(const ReferenceArguments &a) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  const float *const weight = rowOf(a.reads[4], 0, columns);
  const auto count = static_cast<float>(columns);
  const int64_t warps = normBackwardThreads(columns) / 32;
  const int64_t blocks = elementsOf(a.writes[2]) / (2 * columns);
  std::vector<double> sums(blocks * 2 * columns);
  std::vector<float> normalized(columns), dNormalized(columns), grad(columns);
  for (int64_t row = 0; row < rows; ++row) {
    const float *const x = rowOf(a.reads[1], row, columns), *const residual =
                                                                rowOf(a.reads[5], row, columns);
    const float mean = dataOf<float>(a.reads[2])[row], rstd = dataOf<float>(a.reads[3])[row];
    double *const weightSums = sums.data() + row / warps % blocks * 2 * columns;
    loadRow(dataOf<T>(a.reads[0]) + row * columns, columns, grad.data());
    for (int64_t i = 0; i < columns; ++i) {
      normalized[i] = (x[i] - mean) * rstd;
      dNormalized[i] = grad[i] * (weight ? weight[i] : 1);
      weightSums[i] += grad[i] * normalized[i];
      weightSums[columns + i] += grad[i];
    }
    const float sum = sumOf(columns, [&](int64_t i) { return dNormalized[i]; }) / count,
                product =
                    sumOf(columns, [&](int64_t i) { return dNormalized[i] * normalized[i]; }) /
                    count;
    for (int64_t i = 0; i < columns; ++i) {
      const float value =
          (residual ? residual[i] : 0) + (dNormalized[i] - sum - normalized[i] * product) * rstd;
      resultOf<float>(a.writes[0])[row * columns + i] = value;
      if (a.writes[1].data)
        resultOf<T>(a.writes[1])[row * columns + i] = fromFloat<T>(value);
    }
  }
  for (size_t i = 0; i < sums.size(); ++i)
    resultOf<float>(a.writes[2])[i] = static_cast<float>(sums[i]);
}

void normParameters(const ReferenceArguments &a) {
  const int64_t partials = a.ints[0], columns = a.ints[1];
  for (int64_t which = 0; which < 2; ++which)
    for (int64_t i = 0; i < columns && a.writes[which].data; ++i)
      resultOf<float>(a.writes[which])[i] = sumOf(partials, [&](int64_t partial) {
        return dataOf<float>(a.reads[0])[(partial * 2 + which) * columns + i];
      });
}

} // namespace

#define CGC_LAYER_NORM_TRAIN(NAME, T)                                                              \
  CGC_REFERENCE(layer_norm_statistics_##NAME##_1024, normStatistics<T>)                            \
  CGC_REFERENCE(layer_norm_statistics_##NAME##_2048, normStatistics<T>)                            \
  CGC_REFERENCE(layer_norm_backward_##NAME##_1024, normBackward<T>)                                \
  CGC_REFERENCE(layer_norm_backward_##NAME##_2048, normBackward<T>)
CGC_LAYER_NORM_TRAIN(f32, float)
CGC_LAYER_NORM_TRAIN(f16, F16)
CGC_LAYER_NORM_TRAIN(bf16, BF16)
#undef CGC_LAYER_NORM_TRAIN
CGC_REFERENCE(layer_norm_parameters_f32, normParameters)

} // namespace cgc::reference
