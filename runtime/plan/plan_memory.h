// PlanMemory: the memory that a plan needs, known before it is loaded to a device.
#pragma once

#include "runtime/base/export.h"
#include "runtime/plan/plan.h"

#include <cstdint>
#include <vector>

namespace cgc {

/// Memory in bytes. The memory of CUDA graphs, libraries and the driver is not in it.
struct PlanMemory {
  /// On each device, shared by all contexts, with padding between weights. Without weights that
  /// are the first values of states and nothing else.
  uint64_t weights = 0;
  uint64_t arena = 0; ///< Of each context, or of a memory pool: that of the largest bucket.
  uint64_t io = 0;    ///< Static inputs and outputs of all buckets, of each context.
  /// Of each context, with padding between states. All of them, though ranks may divide some.
  uint64_t states = 0;
  /// The part of `arena` that GEMMs of libraries need as workspace: that of the largest bucket
  /// (workspaceBytes).
  uint64_t workspace = 0;
};
/// The memory of `plan`. `separateBuffers`: EngineOptions::separateBuffers, with which `arena` is
/// the sum over the buckets.
CGC_API PlanMemory planMemory(const PlanData &plan, bool separateBuffers = false);

/// Bytes of the static inputs and outputs of a bucket.
CGC_API uint64_t ioBytes(const Bucket &bucket);

/// The most bytes that the workspaces of a bucket's GEMMs take at a time. Those of one branch run
/// one after another.
CGC_API uint64_t workspaceBytes(const Bucket &bucket);

/// Whether records read the weight; others only hold first values of states, which are copied from
/// the plan file, and have no memory on the device. By weight.
CGC_API std::vector<bool> weightsThatRecordsRead(const PlanData &plan);
/// The offset of each weight in the device's memory, followed by the size of all. A weight that no
/// record reads takes no memory.
CGC_API std::vector<uint64_t> weightOffsets(const PlanData &plan);
/// The offset of each state in a context's memory, followed by the size of all. Those that are not
/// `held` (heldStates) take no memory; if it is empty, all are.
CGC_API std::vector<uint64_t> stateOffsets(const PlanData &plan,
                                           const std::vector<bool> &held = {});

} // namespace cgc
