// Activation: the functions that an epilogue applies to each element.
#pragma once

#include <cstdint>

namespace cgc {

/// Values are part of the plan format: append, never renumber.
enum class Activation : uint8_t {
  None,
  Gelu,      ///< x * Phi(x), with the exact cumulative normal distribution.
  GeluTanh,  ///< The approximation of GELU by tanh.
  QuickGelu, ///< x * sigmoid(1.702 x).
  Silu,      ///< x * sigmoid(x).
  Relu,
  Tanh,
};
inline constexpr int kNumActivations = 7;

} // namespace cgc
