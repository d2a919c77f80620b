// Binding: a bucket's records with every tensor, kernel and op resolved; and enqueue, the one
// function that launches anything.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/op_provider.h"
#include "runtime/plan/plan.h"

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace cgc {

struct BoundKernel {
  const void *function = nullptr;
  dim3 grid, block; ///< The grid without the blocks of the companion (KernelParameters).
  size_t sharedBytes = 0;
  KernelParameters parameters;
  bool waits = false; ///< The kernel's trait kWaits.
  /// Its edge is programmatic: it may be scheduled while the kernel before it still runs.
  bool programmatic = false;
};
struct BoundLibraryCall {
  BoundProduct product;
};
struct BoundOpCall {
  const CgcOp *op;
  OpArguments arguments;
};
struct BoundAtenCall {
  std::unique_ptr<BoundCall> call;
};
struct BoundMemcpy {
  const void *source;
  void *destination;
  size_t bytes;
};
struct BoundMemset {
  void *destination;
  size_t bytes;
  uint8_t value;
};

/// A record ready to be enqueued any number of times.
struct BoundRecord {
  std::variant<BoundKernel, BoundLibraryCall, BoundOpCall, BoundAtenCall, BoundMemcpy, BoundMemset>
      op;
  std::string name; ///< Name, source line and module of the record, for messages.
};

/// Memory for the arena's bytes from `begin` on, up to the next part.
struct ArenaPart {
  uint64_t begin;
  std::byte *data;
};

/// Where a context keeps one bucket's data.
struct BucketMemory {
  const std::vector<std::byte *> *weights = nullptr; ///< Of the engine.
  std::vector<ArenaPart> arena;                      ///< In order; most often one, from 0 on.
  std::vector<Buffer> inputs, outputs;
};

/// Where a slot of the bucket lies.
std::byte *addressOf(const Slot &slot, const BucketMemory &memory);

/// What the engine has opened for its records.
struct Libraries {
  OpProvider *provider = nullptr;     ///< Null if there are no ATen records.
  const CublasLt *cublasLt = nullptr; ///< Null if no record calls it.
  std::span<const std::shared_ptr<const OpLibrary>> opLibraries; ///< Those of the plan, in order.
};

/// Resolves every record of `bucket`. Everything passed outlives the result. All edges are plain.
/// What the user may want to know is added to `notes`, once. Unsupported, by name, if this runtime
/// lacks a kernel or library.
Result<std::vector<BoundRecord>> bindRecords(const PlanData &plan, const Bucket &bucket,
                                             const BucketMemory &memory, const Libraries &libraries,
                                             std::vector<std::string> &notes);

/// Makes an edge programmatic if both its ends are kernels of the library and the consumer waits.
void makeProgrammaticEdges(std::vector<BoundRecord> &records);
/// Undoes it.
void makePlainEdges(std::vector<BoundRecord> &records);

/// Launches `record` on `stream` (target cuda), or runs it before returning (target cpu). For an
/// ATen record the caller has put the provider on the same stream.
Status enqueue(const BoundRecord &record, DeviceKind target, cudaStream_t stream);

/// Enqueues all records in order, with the provider (null if not needed) on `stream`. `after`, if
/// given, is called with the number of each record that has been enqueued.
Status enqueueAll(const std::vector<BoundRecord> &records, DeviceKind target, OpProvider *provider,
                  cudaStream_t stream, const std::function<Status(size_t)> &after = nullptr);

} // namespace cgc
