// References of layer_norm_*, add_layer_norm_* and layer_norm_chain_*.
#include "runtime/kernels/pointwise/reference_activations.h"
#include "runtime/kernels/rowwise/reference_statistics.h"

#include <cmath>

namespace cgc::reference {
namespace {

/// Normalizes a row, with weight and bias of W or absent.
template <class W>
void normalizeRow(std::vector<float> &values, float eps, const TensorView &weight,
                  const TensorView &bias) {
  const auto columns = static_cast<int64_t>(values.size());
  const auto count = static_cast<float>(columns);
  const float mean = sumOf(columns, [&](int64_t i) { return values[i]; }) / count;
  const float variance =
      sumOf(columns, [&](int64_t i) { return (values[i] - mean) * (values[i] - mean); }) / count;
  const float rstd = 1 / std::sqrt(variance + eps);
  for (int64_t i = 0; i < columns; ++i) {
    values[i] = (values[i] - mean) * rstd;
    if (weight.data)
      values[i] *= toFloat(dataOf<W>(weight)[i]);
    if (bias.data)
      values[i] += toFloat(dataOf<W>(bias)[i]);
  }
}

/// Normalizes rows of T, with weight and bias of W or absent. Row r of x first gets row
/// r % addendRows of the addend, if there is one; the sum is rounded to T and stored.
template <class T, class W>
void normalizeRows(const ReferenceArguments &a, const TensorView &addend, int64_t addendRows,
                   const TensorView &weight, const TensorView &bias, T *sum, T *y,
                   float *statistics) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  const auto eps = static_cast<float>(a.floats[0]);
  std::vector<float> values(columns), more(columns);
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(dataOf<T>(a.reads[0]) + row * columns, columns, values.data());
    if (addend.data) {
      loadRow(dataOf<T>(addend) + row % addendRows * columns, columns, more.data());
      for (int64_t i = 0; i < columns; ++i)
        values[i] = rounded<T>(values[i] + more[i]);
      storeRow(values.data(), columns, sum + row * columns);
    }
    normalizeRow<W>(values, eps, weight, bias);
    storeRow(values.data(), columns, y + row * columns);
    if (statistics)
      storeRowStatistics(y + row * columns, row, columns, statistics);
  }
}

template <class T, class W = T> void layerNorm(const ReferenceArguments &a) {
  // Kernels in f32 have no operand for row statistics.
  float *const statistics = a.writes.size() > 1 ? resultOf<float>(a.writes[1]) : nullptr;
  normalizeRows<T, W>(a, {}, 1, a.reads[1], a.reads[2], nullptr, resultOf<T>(a.writes[0]),
                      statistics);
}

template <class T, class W = T> void addLayerNorm(const ReferenceArguments &a) {
  normalizeRows<T, W>(a, a.reads[1], a.ints[2], a.reads[2], a.reads[3], resultOf<T>(a.writes[0]),
                      resultOf<T>(a.writes[1]), nullptr);
}

template <class T, class W = T> void layerNormChain(const ReferenceArguments &a) {
  const int64_t rows = a.ints[0], columns = a.ints[1];
  std::vector<float> values(columns);
  const auto roundAll = [&] {
    for (float &value : values)
      value = rounded<T>(value);
  };
  for (int64_t row = 0; row < rows; ++row) {
    loadRow(dataOf<T>(a.reads[0]) + row * columns, columns, values.data());
    for (int64_t norm = 0; norm < a.ints[2]; ++norm) {
      normalizeRow<W>(values, static_cast<float>(a.floats[norm]), a.reads[1 + 2 * norm],
                      a.reads[2 + 2 * norm]);
      roundAll();
    }
    withActivation<T>(Activation(a.ints[3]), [&](auto activation) {
      for (float &value : values)
        value = activation(value);
    });
    storeRow(values.data(), columns, resultOf<T>(a.writes[0]) + row * columns);
  }
}

} // namespace

CGC_FLOAT_REFERENCES(layer_norm, layerNorm)
CGC_FLOAT_REFERENCES(add_layer_norm, addLayerNorm)
CGC_FLOAT_REFERENCES(layer_norm_chain, layerNormChain)
CGC_REFERENCE(layer_norm_by_f32_f16, (layerNorm<F16, float>))
CGC_REFERENCE(layer_norm_by_f32_bf16, (layerNorm<BF16, float>))
CGC_REFERENCE(add_layer_norm_by_f32_f16, (addLayerNorm<F16, float>))
CGC_REFERENCE(add_layer_norm_by_f32_bf16, (addLayerNorm<BF16, float>))
CGC_REFERENCE(layer_norm_chain_by_f32_f16, (layerNormChain<F16, float>))
CGC_REFERENCE(layer_norm_chain_by_f32_bf16, (layerNormChain<BF16, float>))

} // namespace cgc::reference
