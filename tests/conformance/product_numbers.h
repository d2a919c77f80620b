// The operands of products in double precision, which tests of the product kernels share.
#pragma once

#include "runtime/kernels/activation.h"
#include "runtime/kernels/product.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {

inline constexpr DType kHalves[] = {DType::F16, DType::BF16};
/// Shared memory of a block, less what the kernels declare themselves.
inline constexpr uint32_t kMostShared = 225 << 10;

/// As many as a block has memory for.
inline uint32_t mostStages(const ProductTile &tile) {
  uint32_t stages = 2;
  while (stages < kProductMaxStages && tile.sharedBytes(stages + 1) <= kMostShared)
    ++stages;
  return stages;
}

inline double activate(Activation activation, double x) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Gelu:
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  case Activation::GeluTanh:
    return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  case Activation::QuickGelu:
    return x * sigmoid(1.702 * x);
  case Activation::Silu:
    return x * sigmoid(x);
  case Activation::Relu:
    return std::max(x, 0.0);
  case Activation::Tanh:
    return std::tanh(x);
  }
  return NAN;
}

/// Normal numbers, times `scale`, as the dtype holds them.
inline std::vector<double> numbers(DType dtype, int64_t count, unsigned seed, double scale = 1) {
  std::vector<double> values;
  for (const float v : randomFloats(count, seed))
    values.push_back(v * scale);
  return decodeAll(dtype, encode(dtype, values));
}

/// The operands of a product, with its sums in double precision.
struct Numbers {
  DType dtype;
  int64_t tokens, features, depth;
  std::vector<double> x, w, bias, residual, sums, magnitudes;

  Numbers(DType dtype, int64_t tokens, int64_t features, int64_t depth)
      : Numbers(dtype, tokens, features, depth, numbers(dtype, tokens * depth, 1)) {}
  Numbers(DType dtype, int64_t tokens, int64_t features, int64_t depth, std::vector<double> x)
      : dtype(dtype), tokens(tokens), features(features), depth(depth), x(std::move(x)),
        // Sums of a few units, where activations bend.
        w(numbers(dtype, features * depth, 2, 0.5 / std::sqrt(double(depth)))),
        bias(numbers(dtype, features, 3)), residual(numbers(dtype, tokens * features, 4)),
        sums(tokens * features), magnitudes(tokens * features) {
    std::vector<double> columns(w.size());
    for (int64_t f = 0; f < features; ++f)
      for (int64_t k = 0; k < depth; ++k)
        columns[k * features + f] = w[f * depth + k];
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < depth; ++k) {
        const double factor = this->x[t * depth + k], *const column = &columns[k * features];
        double *const sum = &sums[t * features], *const magnitude = &magnitudes[t * features];
        for (int64_t f = 0; f < features; ++f) {
          const double term = factor * column[f];
          sum[f] += term;
          magnitude[f] += std::abs(term);
        }
      }
  }
};

} // namespace cgc::test
