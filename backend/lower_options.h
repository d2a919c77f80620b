// LowerOptions: the target and the choices that a plan is lowered for.
#pragma once

#include "runtime/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

/// A GPU that launch shapes are chosen for, from NVIDIA's data sheets.
struct GpuModel {
  Arch arch;
  std::string_view archName; ///< As in `nvcc -arch`.
  std::string_view name;
  uint32_t multiprocessors;
  uint64_t memoryBytes;
};

/// One model for each Arch, the default one first. The A100 is the larger variant.
inline constexpr GpuModel kGpuModels[] = {
    {Arch::Sm90a, "sm_90a", "NVIDIA H200", 132, 141'000'000'000},
    {Arch::Sm80, "sm_80", "NVIDIA A100", 108, 80'000'000'000},
};
constexpr const GpuModel &gpuModel(Arch arch) {
  return *std::ranges::find(kGpuModels, arch, &GpuModel::arch);
}

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
    const GpuModel &model = gpuModel(arch);
    return {std::string(model.name), model.multiprocessors};
  }
  /// Lets GEMMs of f32 in cuBLASLt round their operands to TF32 (10 bits of mantissa).
  bool tf32 = false;
  /// Lets values whose lifetimes do not overlap share memory.
  bool reusesMemory = true;
  /// The op libraries that are searched for the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries = {};
};

} // namespace cgc::backend
