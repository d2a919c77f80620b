// Engine: checks the device, opens libraries and uploads the weights.
#include "runtime/base/checked.h"
#include "runtime/base/no_throw.h"
#include "runtime/exec/bind.h"
#include "runtime/exec/engine_impl.h"
#include "runtime/exec/provider.h"
#include "runtime/exec/requirements.h"
#include "runtime/exec/upload.h"

#include <algorithm>

namespace cgc {
namespace {

/// Copies the weights from the engine of another GPU.
Status copyWeights(const Engine::Impl &from, Engine::Impl &impl) {
  CGC_ASSIGN_OR_RETURN(const CudaStream stream, createStream());
  const auto copyAll = [&]() -> Status {
    for (const Buffer &buffer : from.deviceWeights) {
      CGC_ASSIGN_OR_RETURN(Buffer copy, Buffer::allocate(DeviceKind::Cuda, buffer.size()));
      CGC_TRY(CGC_CUDA(cudaMemcpyPeerAsync(copy.data(), impl.device, buffer.data(), from.device,
                                           buffer.size(), stream.get()),
                       "cannot copy from GPU " + std::to_string(from.device)));
      impl.deviceWeights.push_back(std::move(copy));
    }
    return Status::ok();
  };
  const Status copied = copyAll();
  // Copies write to the buffers until here, also after a failure.
  CGC_TRY(CGC_CUDA(cudaStreamSynchronize(stream.get()), "cannot copy the weights"));
  CGC_TRY(copied);
  const std::vector<uint64_t> offsets = weightOffsets(impl.plan.data());
  for (size_t i = 0; i < impl.plan.data().weights.size(); ++i)
    impl.weights.push_back(impl.separateBuffers ? impl.deviceWeights[i].data()
                                                : impl.deviceWeights[0].data() + offsets[i]);
  return Status::ok();
}

/// Uploads the weights to one device buffer, or each weight to its own.
Status uploadWeights(const Plan &plan, Engine::Impl &impl) {
  const std::vector<bool> reads = weightsThatRecordsRead(plan.data());
  if (impl.separateBuffers) {
    for (size_t i = 0; i < plan.data().weights.size(); ++i) {
      const UploadPiece piece{reads[i] ? plan.weightBytes(i) : std::span<const std::byte>(), 0};
      CGC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::allocate(DeviceKind::Cuda, piece.bytes.size()));
      CGC_TRY(upload({&piece, 1}, buffer.data(), buffer.size(), impl.device));
      impl.weights.push_back(buffer.data());
      impl.deviceWeights.push_back(std::move(buffer));
    }
    return Status::ok();
  }
  const std::vector<uint64_t> offsets = weightOffsets(plan.data());
  CGC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::allocate(DeviceKind::Cuda, offsets.back()));
  std::vector<UploadPiece> pieces;
  for (size_t i = 0; i < plan.data().weights.size(); ++i) {
    impl.weights.push_back(buffer.data() + offsets[i]);
    if (reads[i])
      pieces.push_back({plan.weightBytes(i), offsets[i]});
  }
  CGC_TRY(upload(pieces, buffer.data(), buffer.size(), impl.device));
  impl.deviceWeights.push_back(std::move(buffer));
  return Status::ok();
}

/// Refuses plans that the reference executor cannot run.
Status checkForReference(const PlanData &plan) {
  if (plan.target == DeviceKind::Cpu)
    return {Code::Usage, "the reference executor runs plans with target cuda, and this plan's is "
                         "cpu: run it without"};
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        if (const auto *call = std::get_if<LibraryCall>(&record.op))
          if (const auto library = plan.opLibraryOf(*call))
            return {Code::Unsupported,
                    recordText(plan, recordName(record), record.location) +
                        ": the reference executor calls no op library, and this op is of '" +
                        plan.opLibraries[*library].name +
                        "'; run the plan on a GPU, or compile it with --target cpu"};
  return Status::ok();
}

/// Refuses an engine whose weights are others or not in the same form.
Status checkSource(const Plan &plan, const Engine::Impl &impl, const Engine::Impl &from) {
  if (&from.plan != &plan || from.separateBuffers != impl.separateBuffers)
    return {Code::Usage, "copyWeightsFrom is an engine of another plan, or with other buffers"};
  if (from.runsOn != DeviceKind::Cuda || impl.runsOn != DeviceKind::Cuda)
    return {Code::Usage, "copyWeightsFrom is for two engines on GPUs"};
  return Status::ok();
}

/// Refuses to run a plan without the host functions that it calls, and ambiguous ones.
Status checkHostFunctions(const PlanData &plan, const Requirements &needs,
                          std::span<const NamedHostFunction> given) {
  for (const NamedHostFunction &one : given) {
    if (!one.function)
      return {Code::Usage, "the host function '" + one.name + "' is null"};
    if (std::ranges::count(given, one.name, &NamedHostFunction::name) > 1)
      return {Code::Usage, "the host function '" + one.name + "' is given twice"};
  }
  for (const auto &[name, location] : needs.hostFunctions)
    if (std::ranges::count(given, name, &NamedHostFunction::name) == 0)
      return {Code::Usage,
              recordText(plan, "the plan calls the host function '" + name + "'", location) +
                  ", which is not given: its module is not in the plan; give a "
                  "host function of this name, or to the tool --host-modules MODEL.pt"};
  return Status::ok();
}

/// Refuses several ranks that would each run on its own, and a communicator of another device.
/// `device` is -1 for the host.
Status checkCommunicator(const Requirements &needs, const Communicator *communicator, int device) {
  const auto nameOf = [](int of) {
    return of < 0 ? std::string("the host") : "GPU " + std::to_string(of);
  };
  if (communicator && communicator->device() != device)
    return {Code::Usage, "the communicator is of " + nameOf(communicator->device()) +
                             ", and the engine of " + nameOf(device) +
                             "; give both the same device"};
  if (needs.nccl || !communicator || communicator->ranks() == 1)
    return Status::ok();
  const std::string ranks = std::to_string(communicator->ranks());
  return {Code::Usage, "the plan has no collectives, and " + ranks +
                           " ranks run it; compile it with --data-parallel, or with --ranks " +
                           ranks};
}

/// Refuses a pool of another device, and a second limit.
Status checkPool(const EngineOptions &options, DeviceKind runsOn) {
  if (!options.pool)
    return Status::ok();
  const MemoryPoolOptions &pool = implOf(*options.pool).options;
  if (pool.target != runsOn || (runsOn == DeviceKind::Cuda && pool.device != options.device))
    return {Code::Usage, "the memory pool is of another device than the engine"};
  if (options.memoryLimit > 0)
    return {Code::Usage, "a memory limit is given besides a memory pool; give it to the pool"};
  return Status::ok();
}

} // namespace

Status Engine::Impl::reserveWeights(Status (MemoryBudget::*reserve)(uint64_t)) {
  const uint64_t bytes = planMemory(plan.data()).weights;
  CGC_TRY((memory().*reserve)(bytes));
  account->add({.weights = bytes});
  return Status::ok();
}

Status FaultLatch::note(Status status, cudaStream_t stream) {
  if (status.isOk())
    return status;
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (!isSticky(error))
    return status;
  std::lock_guard lock(mutex_);
  if (fault_.isOk())
    fault_ = {Code::Device, std::string("the GPU failed with ") + cudaGetErrorName(error) +
                                ", and this process cannot use it any more: end it and start a new "
                                "one (first seen: " +
                                status.message() + ")"};
  return fault_;
}

Status withMemoryBreakdown(Status status, const Plan &plan, DeviceKind device,
                           const std::vector<bool> &held) {
  if (status.code() != Code::OutOfMemory)
    return status;
  const PlanMemory bytes = planMemory(plan.data());
  const uint64_t states = stateOffsets(plan.data(), held).back();
  std::string text = status.message() + "; the plan takes " + byteText(bytes.weights) +
                     " for weights (once for all contexts) and, for each context, " +
                     byteText(bytes.arena) + " for the arena and " + byteText(bytes.io) +
                     " for inputs and outputs" +
                     (states ? " and " + byteText(states) + " for states" : "");
  const std::string free = freeMemoryText(device);
  if (!free.empty() && !status.message().ends_with(free))
    text += "; " + free;
  return {Code::OutOfMemory, text};
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::Impl &implOf(const Engine &engine) {
  return *engine.impl_;
}
Engine::Engine(Engine &&) noexcept = default;
Engine &Engine::operator=(Engine &&) noexcept = default;
Engine::~Engine() {
  if (impl_) {
    const DeviceGuard guard(impl_->device);
    impl_.reset();
  }
}
MemoryReport Engine::memory() const {
  return impl_->account->report();
}
const Plan &Engine::plan() const {
  return impl_->plan;
}

Result<Engine> Engine::create(const Plan &plan, EngineOptions options) {
  return noThrow([&]() -> Result<Engine> {
    auto impl = std::make_unique<Impl>(plan, options);
    CGC_TRY(checkPool(options, impl->runsOn));
    if (options.copyWeightsFrom)
      CGC_TRY(checkSource(plan, *impl, implOf(*options.copyWeightsFrom)));
    const bool isReference = impl->executor == ExecutorKind::Reference,
               onGpu = impl->runsOn == DeviceKind::Cuda;
    if (isReference)
      CGC_TRY(checkForReference(plan.data()));
    CGC_ASSIGN_OR_RETURN(impl->opLibraries, openOpLibraries(plan.data(), options.opLibraries));
    const Requirements needs = requirementsOf(plan.data());
    CGC_TRY(checkHostFunctions(plan.data(), needs, options.hostFunctions));
    CGC_TRY(checkCommunicator(needs, options.communicator.get(), onGpu ? options.device : -1));
    if (onGpu) {
      CGC_ASSIGN_OR_RETURN(impl->gpu, findGpu(options.device));
      CGC_TRY(checkGpu(impl->gpu, needs.kernelTraits));
      impl->device = impl->gpu.index;
    }
    const DeviceGuard guard(impl->device);
    if (isReference) {
      CGC_ASSIGN_OR_RETURN(impl->references, ReferenceLibrary::open(options.referencePath));
    } else if (needs.cublasLt) {
      CGC_ASSIGN_OR_RETURN(impl->cublasLt, CublasLt::open(options.cublasLtPath));
      CGC_TRY(withMemoryBreakdown(impl->cublasLt->initialize(impl->gpu), plan, impl->runsOn,
                                  impl->held));
    }
    if (onGpu) {
      Status status = impl->reserveWeights(&MemoryBudget::reserve);
      if (status.isOk())
        status = options.copyWeightsFrom ? copyWeights(implOf(*options.copyWeightsFrom), *impl)
                                         : uploadWeights(plan, *impl);
      if (!status.isOk()) {
        const std::vector<bool> held = impl->held;
        impl.reset();
        return withMemoryBreakdown(status.withContext("cannot upload the weights"), plan,
                                   DeviceKind::Cuda, held);
      }
    } else {
      CGC_TRY(withMemoryBreakdown(impl->reserveWeights(&MemoryBudget::reserveMapped), plan,
                                  impl->runsOn, impl->held));
      // The mapping is read-only. The cast is safe because validate() refuses records that write to
      // a weight.
      for (size_t i = 0; i < plan.data().weights.size(); ++i)
        impl->weights.push_back(const_cast<std::byte *>(plan.weightBytes(i).data()));
    }
    if (!needs.libTorch.empty()) {
      const auto &[name, op] = *needs.libTorch[0].ops.begin();
      const std::string record = recordText(plan.data(), name, op.location);
      if (!options.provider) {
        auto loaded = loadProvider(options.providerPath);
        if (!loaded.isOk())
          return loaded.status().withContext(record);
        impl->ownProvider = *std::move(loaded);
      }
      impl->provider = options.provider ? options.provider : impl->ownProvider.get();
      CGC_TRY(
          impl->provider->initialize(impl->runsOn, onGpu ? options.device : 0).withContext(record));
    }
    if (impl->pool)
      implOf(*impl->pool).add(impl->account);
    return Engine(std::move(impl));
  });
}

} // namespace cgc
