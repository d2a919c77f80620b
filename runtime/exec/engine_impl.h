// What an engine holds; seen by Context only.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/engine.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/memory_limit.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/op_provider.h"

#include <mutex>

namespace cgc {

/// Remembers the first fault after which the device's context is lost.
class FaultLatch final {
public:
  /// Ok, or the fault. Touches no CUDA.
  Status check() const {
    std::lock_guard lock(mutex_);
    return fault_;
  }
  /// Passes `status` on. If it is an error, looks at the device through `stream` (no capture may be
  /// under way on it) and remembers a lost context.
  Status note(Status status, cudaStream_t stream);

private:
  mutable std::mutex mutex_;
  Status fault_;
};

struct Engine::Impl {
  Impl(const Plan &plan, uint64_t memoryLimit)
      : plan(plan), memory(plan.data().target, memoryLimit) {}

  const Plan &plan;
  int device = -1;                   ///< The GPU; -1 for target cpu.
  Gpu gpu;                           ///< Target cuda only.
  MemoryBudget memory;               ///< Of the weights and of all contexts.
  std::vector<std::byte *> weights;  ///< Where each weight lies.
  std::vector<Buffer> deviceWeights; ///< Hold them for target cuda: one, or one for each.
  bool separateBuffers = false;      ///< As EngineOptions says.
  std::unique_ptr<OpProvider> ownProvider;
  OpProvider *provider = nullptr;     ///< Null if the plan has no ATen records.
  std::unique_ptr<CublasLt> cublasLt; ///< Null if the plan does not call it.
  /// Those of plan.opLibraries, in that order.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries;
  FaultLatch fault;

  DeviceKind target() const { return plan.data().target; }
};

/// What a plan takes, in bytes.
struct PlanBytes {
  uint64_t weights = 0;       ///< Once for all contexts.
  uint64_t arena = 0, io = 0; ///< Of each context.
};
/// `separateBuffers` as EngineOptions says.
PlanBytes planBytes(const Plan &plan, bool separateBuffers = false);

/// Adds to an OutOfMemory status what the plan takes and what the device has free.
Status withMemoryBreakdown(Status status, const Plan &plan);

} // namespace cgc
