// Binding of records to memory and kernels; enqueue.
#include "runtime/exec/bind.h"

#include "runtime/base/check.h"
#include "runtime/base/no_throw.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/validate_access.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cgc {
namespace {

using BoundOp = decltype(BoundRecord::op);

/// The most shared memory in bytes that a block of the current device may have.
Result<int> sharedPerBlock() {
  int device = 0, bytes = 0;
  CGC_TRY(CGC_CUDA(cudaGetDevice(&device), "cannot ask for the GPU"));
  CGC_TRY(CGC_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                   "cannot ask for the GPU's shared memory"));
  return bytes;
}

class Binder {
public:
  Binder(const PlanData &plan, const Bucket &bucket, const BucketMemory &memory,
         const Libraries &libraries, std::vector<std::string> &notes)
      : plan_(plan), bucket_(bucket), memory_(memory), libraries_(libraries), notes_(notes) {}

  Result<BoundRecord> bind(const LaunchRecord &record) const {
    BoundRecord bound{{}, recordText(plan_, recordName(record), record.location), record.branch};
    if (isElsewhere(record)) {
      bound.op = BoundElsewhere();
      return bound;
    }
    Result<BoundOp> op = std::visit([&](const auto &r) { return bindOp(r); }, record.op);
    if (!op.isOk())
      return op.status().withContext(bound.name);
    bound.op = *std::move(op);
    return bound;
  }

private:
  const TensorRef &tensor(TensorId id) const { return bucket_.tensors[uint32_t(id)]; }

  std::byte *address(TensorId id) const { return addressOf(tensor(id).slot, memory_); }

  /// Whether the record uses a state that another rank holds. validate() has checked that it then
  /// uses no state of this rank's shards.
  bool isElsewhere(const LaunchRecord &record) const {
    const auto isAbsent = [&](TensorId id) {
      const Slot &slot = tensor(id).slot;
      const auto shard =
          slot.buffer == BufferKind::State ? plan_.states[slot.index].shard : std::nullopt;
      return shard && libraries_.communicator &&
             libraries_.shardOwners[*shard] != libraries_.communicator->rank();
    };
    return std::ranges::any_of(recordReads(record), isAbsent) ||
           std::ranges::any_of(recordWrites(record), isAbsent);
  }

  /// The operands of a kernel and their addresses; the address of an absent one is null.
  struct Operands {
    std::vector<OperandView> views;
    std::vector<void *> addresses;
  };
  Operands operands(const std::vector<TensorId> &ids) const {
    Operands operands;
    for (TensorId id : ids) {
      OperandView &view = operands.views.emplace_back();
      void *&at = operands.addresses.emplace_back();
      if (id == kNoTensor)
        continue;
      const TensorRef &t = tensor(id);
      at = address(id);
      view = {t.dtype, t.sizes, {}, alignmentOf(reinterpret_cast<uintptr_t>(at))};
      if (!isDense(t.sizes, t.strides))
        view.strides = t.strides;
    }
    return operands;
  }

  /// The operands of a reference or of a host call; an absent one has null data.
  std::vector<TensorView> views(const std::vector<TensorId> &ids) const {
    std::vector<TensorView> views;
    for (TensorId id : ids) {
      TensorView &view = views.emplace_back();
      if (id == kNoTensor)
        continue;
      const TensorRef &t = tensor(id);
      view = {address(id), t.dtype, memory_.device, t.sizes, {}};
      if (!isDense(t.sizes, t.strides))
        view.strides = t.strides;
    }
    return views;
  }

  Result<BoundOp> bindOp(const KernelLaunch &launch) const {
    const Kernel *kernel = findKernel(launch.kernel);
    if (!kernel)
      return Status(Code::Unsupported,
                    "the plan needs a kernel that this runtime does not have; use the cgc that "
                    "compiled it, or compile again");
    if (kernel->abiHash != launch.abiHash)
      return Status(Code::Unsupported,
                    "the plan needs this kernel with abi " + std::to_string(launch.abiHash) +
                        ", and this runtime has abi " + std::to_string(kernel->abiHash) +
                        "; use the cgc that compiled it, or compile again");
    if (!kernel->takesCountsOf(launch))
      return Status(Code::InvalidFile, "the number of arguments is not that of the kernel");
    const Operands reads = operands(launch.reads), writes = operands(launch.writes);
    const LaunchView view{launch.grid,  launch.block, launch.sharedBytes, reads.views,
                          writes.views, launch.ints,  launch.floats};
    CGC_TRY(kernel->check(view));
    if (libraries_.references)
      return bindReference(launch.kernel, kernel->abiHash, launch);
    BoundKernel bound;
    const DeviceKernel &device = deviceKernel(*kernel);
    bound.function = device.function();
    CGC_ASSIGN_OR_RETURN(const int compiledFor, prepare(bound.function, launch.sharedBytes));
    CGC_ASSIGN_OR_RETURN(bound.parameters, device.bind(view, {reads.addresses, writes.addresses,
                                                              constantReads(launch, bucket_)}));
    const KernelParameters::TailLaunch &tail = bound.parameters.tail;
    if (tail.function)
      CGC_TRY(prepare(tail.function, launch.sharedBytes).status());
    bound.grid = {launch.grid[0] - tail.blocks, launch.grid[1], launch.grid[2]};
    bound.block = {launch.block[0], launch.block[1], launch.block[2]};
    bound.sharedBytes = launch.sharedBytes;
    // griddepWait() is empty in code for an older architecture, such as PTX that the driver
    // compiles for a newer GPU.
    bound.waits = (kernel->traits & kProgrammaticLaunch) && compiledFor >= 90;
    return BoundOp(std::move(bound));
  }

  /// Binds the reference of `record`, a KernelLaunch or LibraryCall that has been checked.
  template <class Record>
  Result<BoundOp> bindReference(std::string_view name, uint64_t abiHash,
                                const Record &record) const {
    CGC_ASSIGN_OR_RETURN(const ReferenceFunction function,
                         libraries_.references->find(name, abiHash));
    return BoundOp(BoundReference{function, views(record.reads), views(record.writes), record.ints,
                                  record.floats});
  }

  /// Loads a kernel and allows launches with `sharedBytes` of dynamic shared memory. Returns the
  /// architecture for which nvcc compiled its code, as 10 * major + minor.
  static Result<int> prepare(const void *function, uint32_t sharedBytes) {
    // Loads the kernel's code now, because code must not be loaded during a capture.
    cudaFuncAttributes attributes;
    CGC_TRY(CGC_CUDA(cudaFuncGetAttributes(&attributes, function), "cannot load the kernel"));
    // An SM has one division of its memory between L1 cache and shared memory at a time. Kernels
    // with different carveouts cannot run on an SM together, and changing the carveout waits until
    // the SM is idle.
    CGC_TRY(CGC_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared),
                     "cannot set up the kernel"));
    // The limit is an attribute of the function, not of a launch, so it is set to the maximum once.
    if (int(sharedBytes) <= attributes.maxDynamicSharedSizeBytes)
      return attributes.ptxVersion;
    CGC_ASSIGN_OR_RETURN(const int perBlock, sharedPerBlock());
    const int most = perBlock - int(attributes.sharedSizeBytes);
    if (int(sharedBytes) > most)
      return Status(Code::Device, "it needs " + std::to_string(sharedBytes) +
                                      " bytes of shared memory, and a block of this GPU has " +
                                      std::to_string(most) +
                                      "; run the plan on another GPU, or report this");
    CGC_TRY(
        CGC_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
                 "the kernel cannot have its shared memory"));
    return attributes.ptxVersion;
  }

  /// An operand of an op library's call. validate() has checked that it is dense.
  CgcOpTensor opTensor(TensorId id) const {
    const TensorRef &t = tensor(id);
    return {address(id), t.sizes.data(), uint32_t(t.sizes.size()), uint32_t(t.dtype)};
  }

  Result<BoundOp> bindOpCall(const LibraryCall &call, const OpLibrary &library) const {
    const CgcOp *op = library.find(call.function);
    if (!op)
      return Status(Code::Unsupported,
                    "'" + library.path() + "' has no such op; compile the plan again");
    std::vector<CgcOpTensor> inputs;
    for (TensorId id : call.reads)
      inputs.push_back(opTensor(id));
    OpArguments arguments(inputs, opTensor(call.writes[0]), call.ints, call.floats);
    CGC_TRY(checkOpCall(library, *op, arguments, memory_.device));
    return BoundOp(BoundOpCall{op, std::move(arguments)});
  }

  Result<BoundOp> bindCollective(const LibraryCall &call) const {
    CGC_ASSIGN_OR_RETURN(const CollectiveCall collective, collectiveCall(call, bucket_.tensors));
    const std::span<const int> owners = libraries_.shardOwners; // Of shards that have states.
    std::optional<int> root;
    if (collective.shard)
      root = *collective.shard < owners.size() ? owners[*collective.shard] : 0;
    BoundCollective bound{libraries_.communicator, collective.kind, collective.reduction, {}, root};
    for (size_t i = 0; i < collective.operands.size(); ++i) {
      const TensorRef &operand = tensor(collective.operands[i]);
      bound.parts.push_back({address(collective.operands[i]), address(collective.results[i]),
                             *tensorExtent(operand) / dtypeSize(operand.dtype), operand.dtype});
    }
    return BoundOp(std::move(bound));
  }

  Result<BoundOp> bindOp(const LibraryCall &call) const {
    if (const auto library = plan_.opLibraryOf(call))
      return bindOpCall(call, *libraries_.opLibraries[*library]);
    if (isCollective(call))
      return bindCollective(call);
    if (!isGemm(call))
      return Status(Code::Unsupported, "this runtime knows no such library call; use the cgc that "
                                       "compiled the plan, or compile again");
    CGC_ASSIGN_OR_RETURN(const GemmCall gemm, gemmCall(call, bucket_.tensors));
    if (libraries_.references)
      return bindReference(call.library + "." + call.function, 0, call);
    CGC_CHECK(libraries_.cublasLt && "the engine opens cuBLASLt for a plan that calls it");
    std::string note;
    CGC_ASSIGN_OR_RETURN(BoundGemm bound, libraries_.cublasLt->bind({gemm, bucket_.tensors,
                                                                     [this](TensorId id) -> void * {
                                                                       return address(id);
                                                                     }},
                                                                    call.algorithm, note));
    if (!note.empty() && std::find(notes_.begin(), notes_.end(), note) == notes_.end())
      notes_.push_back(std::move(note));
    return BoundOp(BoundLibraryCall{std::move(bound)});
  }

  Result<BoundOp> bindOp(const AtenCall &call) const {
    CGC_CHECK(libraries_.provider && "the engine loads a provider for a plan with ATen records");
    CGC_ASSIGN_OR_RETURN(auto bound,
                         libraries_.provider->bind(
                             call, bucket_, [this](TensorId id) -> void * { return address(id); }));
    return BoundOp(BoundAtenCall{std::move(bound)});
  }

  Result<BoundOp> bindOp(const Memcpy &copy) const {
    return BoundOp(BoundMemcpy{address(copy.source), address(copy.destination),
                               *tensorExtent(tensor(copy.source))});
  }

  Result<BoundOp> bindOp(const Memset &set) const {
    return BoundOp(
        BoundMemset{address(set.destination), *tensorExtent(tensor(set.destination)), set.value});
  }

  Result<BoundOp> bindOp(const HostCall &call) const {
    const auto found = std::ranges::find(libraries_.hostFunctions, hostFunctionName(call),
                                         &NamedHostFunction::name);
    CGC_CHECK(found != libraries_.hostFunctions.end() &&
              "the engine refuses a plan without its host functions");
    return BoundOp(BoundHostCall{&found->function, views(call.reads), views(call.writes)});
  }

  const PlanData &plan_;
  const Bucket &bucket_;
  const BucketMemory &memory_;
  const Libraries &libraries_;
  std::vector<std::string> &notes_;
};

/// Enqueues each kind of record.
struct Enqueuer {
  DeviceKind device;
  cudaStream_t stream;

  Status operator()(const BoundKernel &k) const {
    CGC_CHECK(device == DeviceKind::Cuda && "only a GPU runs kernels");
    const KernelParameters::TailLaunch &tail = k.parameters.tail;
    cudaLaunchAttribute programmatic;
    programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    programmatic.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = k.grid;
    config.blockDim = k.block;
    config.dynamicSmemBytes = k.sharedBytes;
    config.stream = stream;
    config.attrs = &programmatic;
    config.numAttrs = k.programmatic ? 1 : 0;
    // cudaLaunchKernelExC does not write through the pointers in `parameters`.
    void *parameters = const_cast<KernelParameters &>(k.parameters).data();
    CGC_TRY(CGC_CUDA(cudaLaunchKernelExC(&config, k.function, &parameters), "cannot launch"));
    if (!tail.function)
      return Status::ok();
    config.gridDim = tail.blocks;
    config.numAttrs = k.waits ? 1 : 0; // Within a record too, the code has to wait.
    return CGC_CUDA(cudaLaunchKernelExC(&config, tail.function, &parameters),
                    "cannot launch the tail kernel");
  }
  Status operator()(const BoundReference &r) const {
    r.function({r.reads, r.writes, r.ints, r.floats});
    return Status::ok();
  }
  Status operator()(const BoundLibraryCall &l) const { return l.gemm.launch(stream); }
  Status operator()(const BoundCollective &c) const {
    if (c.communicator)
      return enqueueCollective(*c.communicator, c.kind, c.reduction, c.parts, stream, c.root);
    for (const CollectivePart &part : c.parts)
      if (part.operand != part.result)
        CGC_TRY((*this)(
            BoundMemcpy{part.operand, part.result, part.operandElements * dtypeSize(part.dtype)}));
    return Status::ok();
  }
  Status operator()(const BoundOpCall &o) const {
    const CgcOpCall call = o.arguments.call();
    const char *why = device == DeviceKind::Cuda ? o.op->launch(&call, stream) : o.op->run(&call);
    return why ? Status(Code::Failed, why) : Status::ok();
  }
  Status operator()(const BoundAtenCall &a) const { return a.call->run(); }
  Status operator()(const BoundMemcpy &m) const {
    if (device == DeviceKind::Cuda)
      return CGC_CUDA(
          cudaMemcpyAsync(m.destination, m.source, m.bytes, cudaMemcpyDeviceToDevice, stream),
          "cannot copy");
    std::memcpy(m.destination, m.source, m.bytes);
    return Status::ok();
  }
  Status operator()(const BoundMemset &m) const {
    if (device == DeviceKind::Cuda)
      return CGC_CUDA(cudaMemsetAsync(m.destination, m.value, m.bytes, stream), "cannot set");
    std::memset(m.destination, m.value, m.bytes);
    return Status::ok();
  }
  Status operator()(const BoundElsewhere &) const { return Status::ok(); }
  Status operator()(const BoundHostCall &h) const {
    return noThrow([&]() -> Status {
      try {
        return (*h.function)(h.reads, h.writes, stream);
      } catch (const std::exception &) {
        throw;
      } catch (...) {
        return {Code::Failed, "it threw an object that is no std::exception"};
      }
    });
  }
};

/// The kernel of a launch that leaves bytes of its results as they are; else null.
const KernelLaunch *partialWriter(const LaunchRecord &record) {
  const auto *launch = std::get_if<KernelLaunch>(&record.op);
  const Kernel *kernel = launch ? findKernel(launch->kernel) : nullptr;
  return kernel && !kernel->writesAll() ? launch : nullptr;
}

/// Refuses a launch that could leave bytes of a result that no earlier record wrote: later records
/// would read what other models left in a shared arena. validate() does not know the kernels.
Status checkPartialWrites(const PlanData &plan, const Bucket &bucket) {
  if (std::ranges::none_of(bucket.records, partialWriter))
    return Status::ok();
  uint64_t steps = kMaxWrittenSteps;
  AccessCheck access(plan, bucket, steps);
  for (const LaunchRecord &record : bucket.records) {
    const std::string name = recordText(plan, recordName(record), record.location);
    if (const KernelLaunch *launch = partialWriter(record))
      for (const TensorId id : launch->writes)
        if (id != kNoTensor && !access.hasValue(id))
          return Status(Code::InvalidFile,
                        name + ": it writes some rows of tensor " + std::to_string(uint32_t(id)) +
                            " only, and no earlier record writes all of it; compile the plan "
                            "again");
    if (const Status status = access.add(record); !status.isOk())
      return status.withContext(name);
  }
  return Status::ok();
}

std::byte *arenaAddress(uint64_t offset, const BucketMemory &memory) {
  const auto after = std::ranges::upper_bound(memory.arena, offset, {}, &ArenaPart::begin);
  CGC_CHECK(after != memory.arena.begin() && "every tensor of the arena has memory");
  const ArenaPart &part = *std::prev(after);
  return part.data + (offset - part.begin);
}

} // namespace

std::byte *addressOf(const Slot &slot, const BucketMemory &memory) {
  switch (slot.buffer) {
  case BufferKind::Weight:
    return (*memory.weights)[slot.index] + slot.offset;
  case BufferKind::Arena:
    return arenaAddress(slot.offset, memory);
  case BufferKind::Input:
    return memory.inputs[slot.index].data() + slot.offset;
  case BufferKind::Output:
    return memory.outputs[slot.index].data() + slot.offset;
  case BufferKind::State:
    return (*memory.states)[slot.index] + slot.offset;
  }
  CGC_CHECK(false && "validate() lets no other kind of buffer pass");
  return nullptr;
}

uint64_t constantReads(const KernelLaunch &launch, const Bucket &bucket) {
  uint64_t constant = 0;
  for (size_t i = 0; i < std::min<size_t>(launch.reads.size(), 64); ++i)
    if (const TensorId id = launch.reads[i];
        id != kNoTensor && bucket.tensors[uint32_t(id)].slot.buffer == BufferKind::Weight)
      constant |= uint64_t(1) << i;
  return constant;
}

Result<std::vector<BoundRecord>> bindRecords(const PlanData &plan, const Bucket &bucket,
                                             const BucketMemory &memory, const Libraries &libraries,
                                             std::vector<std::string> &notes) {
  CGC_TRY(checkPartialWrites(plan, bucket));
  const Binder binder(plan, bucket, memory, libraries, notes);
  std::vector<BoundRecord> records;
  records.reserve(bucket.records.size());
  const std::vector<DetachedWaits> order = detachedOrder(bucket);
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    CGC_ASSIGN_OR_RETURN(BoundRecord bound, binder.bind(bucket.records[i]));
    if (!order.empty())
      bound.waits = order[i];
    records.push_back(std::move(bound));
  }
  return records;
}

void removeBranches(std::vector<BoundRecord> &records) {
  for (BoundRecord &record : records) {
    record.branch = 0;
    record.waits = {};
  }
}

Result<BoundRecord> bindRecord(const PlanData &plan, const Bucket &bucket, size_t record,
                               const BucketMemory &memory, const Libraries &libraries,
                               std::vector<std::string> &notes) {
  return Binder(plan, bucket, memory, libraries, notes).bind(bucket.records[record]);
}

void makeProgrammaticEdges(std::vector<BoundRecord> &records) {
  // By branch: the record after which the next one of the branch runs, if it waits for no other.
  std::array<const BoundRecord *, kMaxBranches + 1> last{};
  std::array<DetachedCounts, kMaxBranches + 1> waited{}; // By branch.
  for (BoundRecord &record : records) {
    if (isDetached(record.branch))
      continue;
    bool waitsForMore = false;
    for (size_t d = 0; d < kDetachedBranches; ++d) {
      uint32_t &before = waited[record.branch][d];
      waitsForMore |= record.waits.detached[d] > before;
      before = std::max(before, record.waits.detached[d]);
    }
    const BoundRecord *const producer = last[record.branch];
    if (auto *consumer = std::get_if<BoundKernel>(&record.op))
      consumer->programmatic = consumer->waits && producer &&
                               std::holds_alternative<BoundKernel>(producer->op) && !waitsForMore;
    // Branch 0 and the others wait for each other.
    if (record.branch == 0)
      last = {};
    else
      last[0] = nullptr;
    last[record.branch] = &record;
  }
}

void makePlainEdges(std::vector<BoundRecord> &records) {
  for (BoundRecord &record : records)
    if (auto *kernel = std::get_if<BoundKernel>(&record.op))
      kernel->programmatic = false;
}

std::string recordText(const PlanData &plan, const std::string &name, LocationId location) {
  if (location == kNoLocation)
    return name;
  const SourceLocation &l = plan.locations[uint32_t(location)];
  return name + " (" + l.file + ":" + std::to_string(l.line) +
         (l.module.empty() ? "" : ", " + l.module) + ")";
}

Status enqueue(const BoundRecord &record, DeviceKind device, cudaStream_t stream) {
  return std::visit(Enqueuer{device, stream}, record.op);
}

Status enqueueAll(std::span<const BoundRecord> records, DeviceKind device, OpProvider *provider,
                  cudaStream_t stream, const std::function<Status(size_t)> &after) {
  const auto body = [&]() -> Status {
    for (size_t i = 0; i < records.size(); ++i) {
      if (Status status = enqueue(records[i], device, stream); !status.isOk())
        return status.withContext(records[i].name);
      if (after)
        CGC_TRY(after(i));
    }
    return Status::ok();
  };
  return provider ? provider->onStream(stream, body) : body();
}

} // namespace cgc
