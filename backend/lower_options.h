// LowerOptions: the target and the choices that a plan is lowered for.
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
  Sm90a, ///< Also kernels that only H100 and H200 run.
};

/// A kind of GPU, as far as the choice of kernels depends on it.
struct GpuTarget {
  Arch arch;
  int64_t multiprocessors; ///< The SMs that launch shapes are for.
};

struct LowerOptions {
  LowerOptions(DeviceKind target, Arch arch = Arch::Sm90a) : target(target), arch(arch) {}

  DeviceKind target;
  Arch arch; ///< Only for target cuda.

  /// The GPU that launch shapes are chosen for. Only speed depends on it.
  TargetGpu gpu() const {
    return arch == Arch::Sm90a ? TargetGpu{"NVIDIA H200", 132} : TargetGpu{"NVIDIA A100", 108};
  }
  /// Lets GEMMs of f32 in cuBLASLt round their operands to TF32 (10 bits of mantissa).
  bool tf32 = false;
  /// Lets values whose lifetimes do not overlap share memory.
  bool reusesMemory = true;
  /// The op libraries that are searched for the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries = {};
};

} // namespace cgc::backend
