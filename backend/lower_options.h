// LowerOptions: what a plan is lowered for.
#pragma once

#include "runtime/base/dtype.h"

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
  /// Have the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries = {};
};

} // namespace cgc::backend
