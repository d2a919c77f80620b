// MemoryPool and MemoryReport: memory that models share, and the memory that they use.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/export.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cgc {

/// The memory of a model, or of several, in bytes.
struct MemoryReport {
  uint64_t weights = 0;
  /// For intermediate values and the workspaces of libraries. Of a model in a pool: the part of the
  /// pool's arena that it uses, and the arenas that contexts have to themselves.
  uint64_t arenas = 0;
  uint64_t io = 0; ///< Static input and output buffers.
  /// Memory that the driver took while graphs were captured, instantiated and uploaded.
  uint64_t graphs = 0;
  uint64_t states = 0; ///< Tensors that keep their values from one run to the next.
  /// The part of `arenas` that GEMMs of libraries need as workspace (PlanMemory::workspace). Other
  /// values use it while no GEMM does.
  uint64_t workspace = 0;
  /// The largest total() since the engine, the pool or the session was created.
  uint64_t peak = 0;
  uint64_t total() const { return weights + arenas + io + graphs + states; }
  /// Adds all but the peak.
  CGC_API MemoryReport &operator+=(const MemoryReport &other);
};

/// The memory of a pool by model.
struct PoolReport {
  MemoryReport sum;   ///< `arenas` and `workspace` count the shared arena once.
  uint64_t limit = 0; ///< MemoryPoolOptions::limit.
  struct Model {
    std::string name; ///< EngineOptions::name.
    MemoryReport memory;
  };
  std::vector<Model> models; ///< By creation.
};

struct MemoryPoolOptions {
  DeviceKind target = DeviceKind::Cuda; ///< Cpu: the host's memory.
  int device = 0;                       ///< The index of the GPU.
  uint64_t limit = 0;                   ///< In bytes, without `graphs`. 0: the memory that is free.
};

/// One arena and one limit for all engines that are created with the pool, and their contexts. The
/// arena is as large as the largest of their arenas, not the sum. Runs that share it are ordered on
/// the device, one after another, whatever their threads and streams. The arena grows when a model
/// needs more and never moves. Thread-safe. Engines and contexts share ownership.
class CGC_API MemoryPool final {
public:
  /// Device if there is no such GPU. OutOfMemory if addresses cannot be reserved.
  static Result<std::shared_ptr<MemoryPool>> create(MemoryPoolOptions options = {});
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;
  ~MemoryPool();

  PoolReport report() const;

  struct Impl; ///< memory_pool_impl.h, which is not installed.

private:
  friend Impl &implOf(const MemoryPool &pool);
  explicit MemoryPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
