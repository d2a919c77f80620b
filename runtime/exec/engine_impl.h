// Engine::Impl: the state of an engine, which Engine, Context and the tuner see.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/communicator.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/engine.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/memory_pool_impl.h"
#include "runtime/exec/reference_library.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/op_provider.h"
#include "runtime/plan/plan_memory.h"
#include "runtime/plan/shards.h"

#include <mutex>

namespace cgc {

/// Remembers the first error that lost the device's context. Thread-safe.
class FaultLatch final {
public:
  /// The remembered error, or Ok. Calls no CUDA function.
  Status check() const {
    std::lock_guard lock(mutex_);
    return fault_;
  }
  /// Returns `status`. If it is an error, synchronizes `stream`, which must not be capturing; if
  /// the device's context is lost, remembers that and returns it instead.
  Status note(Status status, cudaStream_t stream);

private:
  mutable std::mutex mutex_;
  Status fault_;
};

struct Engine::Impl {
  Impl(const Plan &plan, const EngineOptions &options)
      : plan(plan), executor(options.executor),
        runsOn(executor == ExecutorKind::Reference ? DeviceKind::Cpu : plan.data().target),
        ownMemory(runsOn, options.memoryLimit), pool(options.pool),
        account(std::make_shared<MemoryAccount>(options.name)),
        separateBuffers(options.separateBuffers), hostFunctions(options.hostFunctions),
        communicator(options.communicator),
        shardOwners(cgc::shardOwners(plan.data(), communicator ? communicator->ranks() : 1)),
        held(heldStates(plan.data(), shardOwners, communicator ? communicator->rank() : 0)) {}
  ~Impl() { memory().release(account->own().weights); }

  const Plan &plan;
  const ExecutorKind executor; ///< EngineOptions::executor.
  /// The device that runs records, and whose memory holds weights, arenas, inputs and outputs: the
  /// plan's target, or the host for the reference executor.
  const DeviceKind runsOn;
  int device = -1;                  ///< The GPU; -1 on the host.
  Gpu gpu;                          ///< On a GPU only.
  MemoryBudget ownMemory;           ///< For the weights and all contexts, without a pool.
  std::shared_ptr<MemoryPool> pool; ///< EngineOptions::pool; may be null.
  /// Reserves memory for the weights, by MemoryBudget::reserve or reserveMapped.
  Status reserveWeights(Status (MemoryBudget::*reserve)(uint64_t));
  MemoryBudget &memory() { return pool ? implOf(*pool).budget : ownMemory; }
  const std::shared_ptr<MemoryAccount> account;
  std::vector<std::byte *> weights;  ///< Address of each weight.
  std::vector<Buffer> deviceWeights; ///< On a GPU: one for all weights, or one for each.
  const bool separateBuffers;        ///< EngineOptions::separateBuffers.
  std::unique_ptr<OpProvider> ownProvider;
  OpProvider *provider = nullptr;     ///< Null if the plan has no ATen records.
  std::unique_ptr<CublasLt> cublasLt; ///< Null if the plan does not call it, or on the host.
  std::unique_ptr<ReferenceLibrary> references; ///< Reference executor only.
  /// The libraries of PlanData::opLibraries, in that order.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries;
  const std::vector<NamedHostFunction> hostFunctions; ///< EngineOptions::hostFunctions.
  const std::shared_ptr<Communicator> communicator;   ///< EngineOptions::communicator.
  const std::vector<int> shardOwners;                 ///< The rank with each shard, by shard.
  const std::vector<bool> held;                       ///< By state, whether this rank holds it.
  FaultLatch fault;
};

/// For the tuner, which binds and captures records of its own.
Engine::Impl &implOf(const Engine &engine);

/// Appends a memory breakdown to the message of an OutOfMemory status: the memory that the plan
/// needs, of the states those that are `held` (stateOffsets), and the free memory of `device`,
/// which it runs on. Other statuses are returned unchanged.
Status withMemoryBreakdown(Status status, const Plan &plan, DeviceKind device,
                           const std::vector<bool> &held = {});

} // namespace cgc
