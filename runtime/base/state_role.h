// StateRole: the purpose of a state, a tensor that keeps its value from one run to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cgc {

/// The values are part of the plan format.
enum class StateRole : uint8_t {
  Parameter, ///< A trained parameter of the model.
  Buffer,    ///< A buffer that the model updates, such as the statistics of batch normalization.
  Optimizer, ///< Belongs to a parameter and to the optimizer: a moment.
  Control,   ///< Numbers of the training step: step, learning rates, seed, offset.
  Average,   ///< The average of a parameter over steps, with its sizes and dtype.
  Gradient,  ///< The gradient of a parameter, summed over micro-batches.
  Copy,      ///< A parameter in 16 bits, which each update writes beside it.
};
inline constexpr int kNumStateRoles = 7;

/// "parameter", "buffer", "optimizer", "control", "average", "gradient", "copy".
constexpr std::string_view stateRoleName(StateRole role) {
  constexpr std::string_view kNames[kNumStateRoles] = {
      "parameter", "buffer", "optimizer", "control", "average", "gradient", "copy"};
  return kNames[static_cast<int>(role)];
}

/// The role with this name; nothing if there is none.
constexpr std::optional<StateRole> parseStateRole(std::string_view name) {
  for (int i = 0; i < kNumStateRoles; ++i)
    if (stateRoleName(static_cast<StateRole>(i)) == name)
      return static_cast<StateRole>(i);
  return std::nullopt;
}

} // namespace cgc
