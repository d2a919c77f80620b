// Binding: resolves a bucket's records to kernels, ops and memory, and enqueues bound records.
#pragma once

#include "runtime/exec/buffer.h"
#include "runtime/exec/communicator_impl.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/detached_order.h"
#include "runtime/exec/host_function.h"
#include "runtime/exec/reference_library.h"
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/op_provider.h"
#include "runtime/plan/plan.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cgc {

/// A kernel with its launch shape and parameters.
struct BoundKernel {
  const void *function = nullptr;
  dim3 grid, block; ///< `grid` excludes the CTAs of the tail launch (KernelParameters).
  size_t sharedBytes = 0;
  KernelParameters parameters;
  bool waits = false; ///< Its code waits for the kernel before it (kProgrammaticLaunch).
  /// The edge to this kernel is programmatic: it may be scheduled while the preceding kernel runs.
  bool programmatic = false;
};
/// The reference of a kernel or of a library call, with its operands in host memory. Borrows sizes,
/// strides and numbers from the plan.
struct BoundReference {
  ReferenceFunction function = nullptr;
  std::vector<TensorView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
};
struct BoundLibraryCall {
  BoundGemm gemm;
};
/// Borrows the communicator. Without one, which is one rank alone, results are copies of operands.
struct BoundCollective {
  Communicator *communicator;
  CollectiveKind kind;
  Reduction reduction;
  std::vector<CollectivePart> parts;
  std::optional<int> root; ///< As enqueueCollective() takes it.
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
/// Borrows function and sizes.
struct BoundHostCall {
  const HostFunction *function;
  std::vector<TensorView> reads, writes;
};

/// A record that another rank runs, which holds the states that it uses.
struct BoundElsewhere {};

/// A record bound to memory. It can be enqueued any number of times.
struct BoundRecord {
  std::variant<BoundKernel, BoundReference, BoundLibraryCall, BoundCollective, BoundOpCall,
               BoundAtenCall, BoundMemcpy, BoundMemset, BoundHostCall, BoundElsewhere>
      op;
  std::string name;    ///< Name, source line and module of the record, for messages.
  uint32_t branch = 0; ///< LaunchRecord::branch.
  DetachedWaits waits = {};
};

inline bool callsHost(const BoundRecord &record) {
  return std::holds_alternative<BoundHostCall>(record.op);
}

/// The memory of the arena's bytes from offset `begin` to the next part.
struct ArenaPart {
  uint64_t begin;
  std::byte *data;
};

/// The memory of one bucket of a context. `inputs` and `outputs` are its static buffers.
struct BucketMemory {
  DeviceKind device = DeviceKind::Cpu;               ///< Where the memory is.
  const std::vector<std::byte *> *weights = nullptr; ///< The engine's, by weight.
  /// The context's, by state; null for one that another rank holds.
  const std::vector<std::byte *> *states = nullptr;
  std::vector<ArenaPart> arena; ///< By ascending `begin`; usually one part.
  std::vector<Buffer> inputs, outputs;
};

/// The address of a slot of the bucket.
std::byte *addressOf(const Slot &slot, const BucketMemory &memory);

/// The libraries that the engine has opened for the plan's records. Borrowed from the engine.
struct Libraries {
  OpProvider *provider = nullptr;     ///< Null if the plan has no ATen records.
  const CublasLt *cublasLt = nullptr; ///< Null if no record calls it.
  std::span<const std::shared_ptr<const OpLibrary>> opLibraries; ///< As PlanData::opLibraries.
  /// Null unless the reference executor runs kernels and calls of cuBLASLt.
  const ReferenceLibrary *references = nullptr;
  std::span<const NamedHostFunction> hostFunctions = {}; ///< Has those that the plan calls.
  Communicator *communicator = nullptr;                  ///< Null: there is one rank.
  std::span<const int> shardOwners = {};                 ///< The rank with each shard, by shard.
};

/// LaunchAddresses::constantReads of a launch: bit i is set if reads[i], one of the first 64, is a
/// weight.
uint64_t constantReads(const KernelLaunch &launch, const Bucket &bucket);

/// Binds every record of `bucket`, with plain (full-dependency) edges. All arguments must outlive
/// the result. Adds remarks for the user to `notes`, each once. Unsupported, naming the record, if
/// this runtime lacks a kernel or library.
Result<std::vector<BoundRecord>> bindRecords(const PlanData &plan, const Bucket &bucket,
                                             const BucketMemory &memory, const Libraries &libraries,
                                             std::vector<std::string> &notes);

/// Binds one record of `bucket` in the same way.
Result<BoundRecord> bindRecord(const PlanData &plan, const Bucket &bucket, size_t record,
                               const BucketMemory &memory, const Libraries &libraries,
                               std::vector<std::string> &notes);

/// Puts all records into branch 0, so that they run in order. Nothing waits for a collective then.
void removeBranches(std::vector<BoundRecord> &records);
/// Makes an edge between two consecutive records programmatic if both are kernels of the kernel
/// library, the second waits for the first itself (kProgrammaticLaunch), and it waits for nothing
/// else: both are in branch 0, or in one branch of one parallel region.
void makeProgrammaticEdges(std::vector<BoundRecord> &records);
/// Makes all edges plain again.
void makePlainEdges(std::vector<BoundRecord> &records);

/// The name of a record with its source line and module, if it has them, for messages:
/// "aten::gelu (model.py:40, visual.mlp)".
std::string recordText(const PlanData &plan, const std::string &name, LocationId location);

/// Enqueues `record` on `stream` (device cuda), or runs it before returning (device cpu). `device`
/// is that of the record's memory. For an ATen record the provider must already be set to the same
/// stream. A host call calls its function, whose exceptions become a Status.
Status enqueue(const BoundRecord &record, DeviceKind device, cudaStream_t stream);

/// Enqueues all records in order, whatever their branches, with `provider` (null if not needed) set
/// to `stream`. Calls `after`, if given, with the index of each record once it is enqueued.
Status enqueueAll(std::span<const BoundRecord> records, DeviceKind device, OpProvider *provider,
                  cudaStream_t stream, const std::function<Status(size_t)> &after = nullptr);

} // namespace cgc
