// Activation: the functions that kernels apply to each element of a result.
#pragma once

#include <cstdint>

namespace cgc {

/// Values are part of the plan format: append, never renumber.
enum class Activation : uint8_t {
  None,
  Gelu,      ///< x * Phi(x), with the exact normal distribution.
  GeluTanh,  ///< Its approximation by tanh.
  QuickGelu, ///< x * sigmoid(1.702 x).
  Silu,      ///< x * sigmoid(x).
  Relu,
  Tanh,
};
inline constexpr int kNumActivations = 7;

} // namespace cgc
