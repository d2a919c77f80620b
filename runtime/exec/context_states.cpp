// Context: the states of a plan: their memory, first values, reading and writing.
#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/busy_scope.h"
#include "runtime/exec/context_impl.h"

namespace cgc {

Status Context::Impl::createStates() {
  const PlanData &plan = engine.plan.data();
  if (plan.states.empty())
    return Status::ok();
  const std::vector<uint64_t> offsets = stateOffsets(plan, engine.held);
  states.resize(plan.states.size());
  if (!engine.separateBuffers) {
    CGC_ASSIGN_OR_RETURN(Buffer all, Buffer::allocate(device, offsets.back()));
    for (size_t i = 0; i < plan.states.size(); ++i)
      if (engine.held[i])
        states[i] = all.data() + offsets[i];
    stateBuffers.push_back(std::move(all));
  } else {
    for (size_t i = 0; i < plan.states.size(); ++i) {
      if (!engine.held[i])
        continue;
      const uint64_t bytes = *tensorBytes(plan.states[i].dtype, plan.states[i].sizes);
      CGC_ASSIGN_OR_RETURN(Buffer one, Buffer::allocate(device, bytes));
      states[i] = one.data();
      stateBuffers.push_back(std::move(one));
    }
  }
  counted.states = offsets.back();
  engine.account->add({.states = counted.states});
  return initializeStates(); // Warm-up runs read them.
}

Status Context::Impl::initializeStates() {
  const PlanData &plan = engine.plan.data();
  const auto body = [&]() -> Status {
    for (size_t i = 0; i < plan.states.size(); ++i) {
      if (!engine.held[i])
        continue;
      const State &state = plan.states[i];
      const uint64_t bytes = *tensorBytes(state.dtype, state.sizes);
      const Block to{states[i], device, bytes};
      if (state.initial == kBeginsAsZeros) {
        CGC_TRY(fill(to, 0, bytes, 1, stream.get()));
        continue;
      }
      // Only read.
      auto *const first = const_cast<std::byte *>(engine.plan.weightBytes(state.initial).data());
      CGC_TRY(copy(to, {first, DeviceKind::Cpu, bytes}, bytes, 1, stream.get()));
    }
    return Status::ok();
  };
  if (plan.states.empty())
    return Status::ok();
  CGC_TRY(inTurn(stream.get(), body).withContext("cannot set the states"));
  return device == DeviceKind::Cpu
             ? Status::ok()
             : CGC_CUDA(cudaStreamSynchronize(stream.get()), "cannot set the states");
}

Status Context::Impl::copyState(size_t index, const TensorView &view, bool toState,
                                cudaStream_t callers) {
  const State &state = engine.plan.data().states[index];
  const IoTensor type{.name = state.name, .dtype = state.dtype, .sizes = state.sizes};
  CGC_TRY(checkViews({&type, 1}, {&view, 1}, device, "state"));
  if (!engine.held[index])
    return {Code::Usage, "rank " + std::to_string(engine.shardOwners[*state.shard]) +
                             " holds the state '" + state.name + "', and this is rank " +
                             std::to_string(engine.communicator->rank()) +
                             "; read it there, or from a checkpoint"};
  const uint64_t bytes = *tensorBytes(state.dtype, state.sizes);
  const Block own{states[index], device, bytes};
  const Block given{static_cast<std::byte *>(view.data), view.device, bytes};
  const cudaStream_t on = callers ? callers : stream.get();
  CGC_TRY(
      inTurn(on, [&] { return copy(toState ? own : given, toState ? given : own, bytes, 1, on); }));
  return callers || device == DeviceKind::Cpu
             ? Status::ok()
             : CGC_CUDA(cudaStreamSynchronize(on), "cannot copy the state");
}

Status Context::Impl::broadcastStates(Communicator &communicator) {
  const PlanData &plan = engine.plan.data();
  std::vector<CollectivePart> parts;
  for (size_t i = 0; i < plan.states.size(); ++i) {
    const State &state = plan.states[i];
    if (const uint64_t bytes = *tensorBytes(state.dtype, state.sizes); bytes > 0 && !state.shard)
      parts.push_back({states[i], states[i], bytes / dtypeSize(state.dtype), state.dtype});
  }
  if (parts.empty())
    return Status::ok();
  CGC_TRY(inTurn(stream.get(), [&] {
    return enqueueCollective(communicator, CollectiveKind::Broadcast, Reduction::Sum, parts,
                             stream.get());
  }));
  return device == DeviceKind::Cpu
             ? Status::ok()
             : CGC_CUDA(cudaStreamSynchronize(stream.get()), "cannot share the states");
}

Status Context::Impl::moveState(Communicator &communicator, size_t index, const TensorView &view,
                                bool toState) {
  const State &state = engine.plan.data().states[index];
  const int owner = engine.shardOwners[*state.shard], rank = communicator.rank();
  const IoTensor type{.name = state.name, .dtype = state.dtype, .sizes = state.sizes};
  CGC_TRY(checkViews({&type, 1}, {&view, 1}, device, "state"));
  if (owner == 0)
    return rank == 0 ? copyState(index, view, toState, nullptr) : Status::ok();
  const uint64_t bytes = *tensorBytes(state.dtype, state.sizes);
  CGC_TRY(engine.memory().reserve(bytes));
  const auto move = [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(const Buffer buffer, Buffer::allocate(device, bytes));
    const Block between{buffer.data(), device, bytes};
    const Block own{states[index], device, bytes};
    const Block given{static_cast<std::byte *>(view.data), view.device, bytes};
    const int from = toState ? 0 : owner, to = toState ? owner : 0;
    const auto enqueue = [&]() -> Status {
      if (rank == from)
        CGC_TRY(copy(between, toState ? given : own, bytes, 1, stream.get()));
      const CollectivePart part{buffer.data(), buffer.data(), bytes / dtypeSize(state.dtype),
                                state.dtype};
      CGC_TRY(enqueueCollective(communicator, CollectiveKind::Broadcast, Reduction::Sum, {&part, 1},
                                stream.get(), from));
      return rank == to ? copy(toState ? own : given, between, bytes, 1, stream.get())
                        : Status::ok();
    };
    Status moved = inTurn(stream.get(), enqueue);
    // The buffer is in use until here, also after a failure.
    const Status waited = device == DeviceKind::Cpu
                              ? Status::ok()
                              : CGC_CUDA(cudaStreamSynchronize(stream.get()),
                                         "cannot move the state '" + state.name + "'");
    return moved.isOk() ? waited : moved;
  };
  Status moved = noThrow(move);
  engine.memory().release(bytes);
  return moved;
}

namespace {

/// Runs `body` as the only user of the context.
template <class F> Status alone(Context::Impl &impl, F &&body) {
  return noThrow([&]() -> Status {
    const BusyScope scope(impl.busy);
    if (!scope.entered())
      return busyContext();
    CGC_TRY(impl.engine.fault.check());
    const DeviceGuard guard(impl.engine.device);
    Status status = body();
    if (impl.device == DeviceKind::Cuda)
      status = impl.engine.fault.note(std::move(status), impl.stream.get());
    return status;
  });
}

} // namespace

Status Context::Impl::transferState(size_t index, const TensorView &view, bool toState,
                                    cudaStream_t callers) {
  return alone(*this, [&] { return copyState(index, view, toState, callers); });
}

Status Context::Impl::transferState(std::string_view name, const TensorView &view, bool toState,
                                    cudaStream_t callers) {
  const std::optional<size_t> index = engine.plan.data().findState(name);
  if (!index)
    return {Code::Usage,
            "the plan has no state '" + std::string(name) + "'; `cgc inspect` lists its states"};
  return transferState(*index, view, toState, callers);
}

Status Context::readState(std::string_view name, const TensorView &to, void *stream) {
  return noThrow(
      [&] { return impl_->transferState(name, to, /*toState=*/false, cudaStream_t(stream)); });
}

Status Context::writeState(std::string_view name, const TensorView &from, void *stream) {
  return noThrow(
      [&] { return impl_->transferState(name, from, /*toState=*/true, cudaStream_t(stream)); });
}

Status Context::resetStates() {
  return alone(*impl_, [&] { return impl_->initializeStates(); });
}

} // namespace cgc
