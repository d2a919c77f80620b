// Requirements: what a plan needs at run time besides libcgc_runtime.
#pragma once

#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/plan.h"

#include <map>
#include <string>
#include <vector>

namespace cgc {

/// What a plan needs. Its op libraries are PlanData::opLibraries.
struct Requirements {
  struct LibTorchOp {
    size_t records = 0;                ///< In the bucket that has the most.
    LocationId location = kNoLocation; ///< Of the first record.
  };
  struct LibTorchEntry {
    std::string entry;
    std::map<std::string, LibTorchOp> ops; ///< By recordName(): "aten::convolution".
  };
  /// The entries with records that LibTorch runs, in the plan's order. Empty: the plan needs no
  /// LibTorch.
  std::vector<LibTorchEntry> libTorch;
  bool cublasLt = false; ///< Some products are cuBLASLt's.
  bool gpu = false;      ///< The target is cuda.
  /// The traits (KernelTrait) of all kernels that the plan launches, together. Kernels that this
  /// runtime lacks count for nothing: bindRecords refuses them.
  unsigned kernelTraits = 0;

  /// Some kernels run on sm_90a only; the others run from sm_80 on.
  bool needsSm90a() const { return kernelTraits & kHopper; }
};

Requirements requirementsOf(const PlanData &plan);

} // namespace cgc
