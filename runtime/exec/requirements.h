// Requirements: the hardware and libraries that a plan needs besides libcgc_runtime.
#pragma once

#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/plan.h"

#include <map>
#include <string>
#include <vector>

namespace cgc {

/// The requirements of a plan, except its op libraries, which PlanData::opLibraries lists.
struct Requirements {
  /// An ATen op that LibTorch runs.
  struct LibTorchOp {
    size_t records = 0;                ///< Number of records in the bucket that has the most.
    LocationId location = kNoLocation; ///< Source location of the first record.
  };
  /// An entry with records that LibTorch runs.
  struct LibTorchEntry {
    std::string entry;
    std::map<std::string, LibTorchOp> ops; ///< By recordName(): "aten::convolution".
  };
  /// The entries with records that LibTorch runs, in the plan's order. Empty if the plan needs no
  /// LibTorch.
  std::vector<LibTorchEntry> libTorch;
  /// The functions of the host that records call, by hostFunctionName(), with the location of the
  /// first call.
  std::map<std::string, LocationId> hostFunctions;
  bool nccl = false;     ///< Whether a record is a collective.
  int64_t ranks = 0;     ///< The number of ranks that sizes are made for; 0 if they fit any.
  bool cublasLt = false; ///< Whether a record calls cuBLASLt.
  bool gpu = false;      ///< Whether the target is cuda.
  /// The union of the traits (KernelTrait) of all kernels that the plan launches. Kernels that this
  /// runtime lacks are ignored: bindRecords refuses them.
  unsigned kernelTraits = 0;

  /// Whether a kernel runs only on sm_90a. All others run on sm_80 and newer.
  bool needsSm90a() const { return kernelTraits & kHopper; }
};

/// The number of ranks that sizes of a bucket are made for; 0 if they fit any. The largest one, if
/// records of a bucket differ.
int64_t ranksOf(const Bucket &bucket);
/// Whether all sizes of a bucket fit so many ranks.
bool fitsRanks(const Bucket &bucket, int64_t ranks);

/// The requirements of a valid plan.
Requirements requirementsOf(const PlanData &plan);

} // namespace cgc
