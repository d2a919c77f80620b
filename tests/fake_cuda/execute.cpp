// Operations of the fake GPU: how they are enqueued or captured, and how they run.
#include "tests/fake_cuda/exported_functions.h"
#include "tests/fake_cuda/state.h"

#include <cstring>

namespace cgc::test::fake_cuda {
namespace {

/// Runs an operation. It works with memory that may have been freed since it was enqueued, which is
/// the illegal access that it would be on a GPU.
struct Executor {
  State &state;

  void operator()(const KernelLaunch &launch) const {
    ++state.ticks;
    if (launch.hostCode) {
      thisThread.isInHostFunction = true;
      launch.hostCode();
      thisThread.isInHostFunction = false;
    } else if (!launch.arguments ||
               !hasBoundShape(launch.function, *launch.arguments, launch.grid, launch.block))
      state.sticky = cudaErrorLaunchFailure;
    else if (inaccessibleOperand(*launch.arguments, [&](const std::byte *data, uint64_t bytes) {
               return state.isAccessible(launch.device, data, bytes);
             }))
      state.sticky = cudaErrorIllegalAddress;
    else
      runReference(launch.function, *launch.arguments);
  }

  void operator()(const Copy &copy) const {
    ++state.ticks;
    if (state.deviceOf(copy.to, copy.toBytes()) != copy.toDevice ||
        state.deviceOf(copy.from, copy.fromBytes()) != copy.fromDevice || state.isFreed(copy.to) ||
        state.isFreed(copy.from)) {
      state.sticky = cudaErrorIllegalAddress;
      return;
    }
    for (size_t row = 0; row < copy.height; ++row)
      std::memmove(copy.to + row * copy.toPitch, copy.from + row * copy.fromPitch, copy.width);
  }

  void operator()(const Fill &fill) const {
    ++state.ticks;
    if (state.deviceOf(fill.to, fill.bytes()) < 0) {
      state.sticky = cudaErrorIllegalAddress;
      return;
    }
    for (size_t row = 0; row < fill.height; ++row)
      for (size_t i = 0; i < fill.width; ++i) // The fake GPU is little-endian.
        std::memcpy(fill.to + row * fill.pitch + i * fill.elementSize, &fill.value,
                    fill.elementSize);
  }

  void operator()(const HostCall &call) const {
    ++state.ticks;
    state.mutex.unlock(); // Other threads may call CUDA while it runs.
    thisThread.isInHostFunction = true;
    call.function(call.data);
    thisThread.isInHostFunction = false;
    state.mutex.lock();
  }

  void operator()(const EventWait &wait) const {
    if (wait.event->record)
      state.complete(wait.event->record->point);
  }

  // A launch of a graph has replaced child graphs by their nodes and sets the records' times.
  void operator()(const ChildGraph &) const {}
  void operator()(const EventRecord &) const {}
  void operator()(const Empty &) const {}
};

} // namespace

void State::execute(const Operation &operation) {
  std::visit(Executor{*this}, operation);
}

cudaError_t State::submit(cudaStream_t handle, Operation operation, bool isProgrammatic) {
  const std::shared_ptr<Stream> stream = find(handle);
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = refuseImplicit(*stream); error != cudaSuccess)
    return error;
  const auto shared = std::make_shared<const Operation>(std::move(operation));
  if (!stream->capture) {
    push(stream, [this, shared] { execute(*shared); });
    return cudaSuccess;
  }
  if (stream->capture->isInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  std::vector<Dependency> dependencies = stream->dependencies;
  const auto isProgrammaticEdge = [&](const Dependency &d) {
    return isProgrammatic && typeOf(*d.node->operation) == cudaGraphNodeTypeKernel;
  };
  if (major != 9) // The code of this launch does not wait.
    std::erase_if(dependencies, isProgrammaticEdge);
  for (Dependency &d : dependencies)
    if (isProgrammaticEdge(d)) {
      d.data.type = cudaGraphDependencyTypeProgrammatic;
      d.data.from_port = cudaGraphKernelNodePortProgrammatic;
    }
  Node *const node = stream->capture->graph->add(shared, std::move(dependencies));
  stream->dependencies = {{node}};
  return cudaSuccess;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  return api(__func__, stream, [&](State &state) {
    return function ? state.submit(stream, HostCall{function, data}) : cudaErrorInvalidValue;
  });
}

extern "C" __attribute__((visibility("default")))
const cgc::test::fake_cuda::ExportedFunctions cgcFakeCudaFunctions = {
#define X(name) name,
    CGC_EXPORTED_FAKE_CUDA(X)
#undef X
};
