// LowerOptions: what a plan is lowered for.
#pragma once

#include "runtime/plan/plan.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace cgc {
class OpLibrary;
}

namespace cgc::backend {

/// The GPUs whose kernels a plan may use.
enum class Arch : uint8_t {
  Sm80,  ///< Kernels that every GPU from sm_80 on runs.
  Sm90a, ///< Also those for H100 and H200 alone.
};

struct LowerOptions {
  LowerOptions(DeviceKind target, Arch arch = Arch::Sm90a) : target(target), arch(arch) {}

  DeviceKind target;
  Arch arch; ///< Of target cuda.

  /// The GPU that launch shapes are chosen for: nothing but speed depends on it.
  TargetGpu gpu() const {
    return arch == Arch::Sm90a ? TargetGpu{"NVIDIA H200", 132} : TargetGpu{"NVIDIA A100", 108};
  }
  /// Lets cuBLASLt's products of f32 round their factors to 10 bits of mantissa.
  bool tf32 = false;
  /// Lets values that are never alive together share memory.
  bool reusesMemory = true;
  /// Have the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries = {};
};

} // namespace cgc::backend
