// The activations (activation.h) in f32, for references. T is the type that the caller rounds to.
#pragma once

#include "runtime/kernels/pointwise/activation.h"

#include <cmath>
#include <type_traits>

namespace cgc::reference {

/// The maximum; NaN if either operand is NaN, unlike std::fmax.
inline float maxOrNan(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
}
/// The minimum; NaN if either operand is NaN, unlike std::fmin.
inline float minOrNan(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
}

inline float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

template <class T> float gelu(float x) {
  constexpr float kSqrtHalf = 0.70710678118654752f;
  if constexpr (std::is_same_v<T, float>)
    return x * 0.5f * (1 + std::erf(x * kSqrtHalf));
  // As the kernels of 16-bit elements: max(x, 0) - |x| Phi(-|x|) keeps relative precision for
  // negative x and gives 0 for -infinity. Phi(-20) rounds to 0 in f32.
  const float t = std::fmin(std::fabs(x), 20.0f);
  return maxOrNan(x, 0) - t * 0.5f * std::erfc(t * kSqrtHalf);
}

inline float geluTanh(float x) {
  // 0.5 (1 + tanh(u)) is sigmoid(2u).
  constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
  return x * sigmoid(kTwiceSqrt2OverPi * (0.044715f * x * x * x + x));
}

/// Calls `f(function)` with the function of `kind`, so that the switch is outside of loops.
template <class T, class F> decltype(auto) withActivation(Activation kind, F &&f) {
  switch (kind) {
  case Activation::Gelu:
    return f([](float x) { return gelu<T>(x); });
  case Activation::GeluTanh:
    return f([](float x) { return geluTanh(x); });
  case Activation::QuickGelu:
    return f([](float x) { return x * sigmoid(1.702f * x); });
  case Activation::Silu:
    return f([](float x) { return x * sigmoid(x); });
  case Activation::Relu:
    return f([](float x) { return maxOrNan(x, 0); });
  case Activation::Tanh:
    return f([](float x) { return std::tanh(x); });
  case Activation::None:
    break;
  }
  return f([](float x) { return x; });
}

} // namespace cgc::reference
