// Launches of the fake GPU's kernels, their attributes, and PTX, which only traps.
#include "tests/fake_cuda/state.h"

#include <cstring>

namespace cgc::test::fake_cuda {
namespace {

constexpr int kDefaultShared = 48 << 10; ///< Dynamic shared memory that needs no attribute.

/// What cudaLibraryGetKernel returns. The fake GPU does not run PTX: its kernels trap.
constexpr char kPtxKernel = 0;

int sharedLimit(const Device &device, const void *function) {
  const auto at = device.sharedLimits.find(function);
  return at == device.sharedLimits.end() ? kDefaultShared : at->second;
}

bool isValid(dim3 grid, dim3 block) {
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0 &&
         uint64_t(block.x) * block.y * block.z <= 1024;
}

/// Launches on `handle`, a stream of the current device.
cudaError_t launch(State &state, const void *function, dim3 grid, dim3 block, size_t sharedBytes,
                   void **arguments, cudaStream_t handle, bool isProgrammatic) {
  const std::shared_ptr<Stream> stream = state.find(handle);
  if (!stream || stream->device != thisThread.device)
    return cudaErrorInvalidResourceHandle;
  KernelLaunch launch;
  if (const cudaError_t error =
          state.makeLaunch(function, grid, block, sharedBytes, arguments, launch);
      error != cudaSuccess)
    return error;
  return state.submit(handle, std::move(launch), isProgrammatic);
}

} // namespace

cudaError_t State::makeLaunch(const void *function, dim3 grid, dim3 block, size_t sharedBytes,
                              void **arguments, KernelLaunch &launch) {
  if (!isKernel(function) && function != &kPtxKernel)
    return cudaErrorInvalidDeviceFunction;
  if (!isValid(grid, block))
    return cudaErrorInvalidConfiguration;
  if (sharedBytes > size_t(sharedLimit(devices[thisThread.device], function)))
    return cudaErrorInvalidValue;
  launch = {function, grid, block, unsigned(sharedBytes), thisThread.device, nullptr, nullptr};
  if (isKernel(function)) {
    launch.arguments = std::make_shared<KernelArguments>();
    std::memcpy(launch.arguments.get(), arguments[0], sizeof(KernelArguments));
  }
  return cudaSuccess;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  return api(__func__, [&](State &state) {
    if (!isKernel(function))
      return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->maxDynamicSharedSizeBytes = sharedLimit(state.devices[thisThread.device], function);
    attributes->maxThreadsPerBlock = 1024;
    attributes->binaryVersion = 10 * state.major;
    attributes->ptxVersion = state.major == 9 ? 90 : 80;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  return api(__func__, [&](State &state) {
    if (!isKernel(function))
      return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
      state.devices[thisThread.device].sharedLimits[function] = value;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
  bool isProgrammatic = false;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    isProgrammatic |= config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                      config->attrs[i].val.programmaticStreamSerializationAllowed;
  return api(__func__, config->stream, [&](State &state) {
    return launch(state, function, config->gridDim, config->blockDim, config->dynamicSmemBytes,
                  arguments, config->stream, isProgrammatic);
  });
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t sharedBytes, cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) {
    return launch(state, function, grid, block, sharedBytes, arguments, stream, false);
  });
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *, cudaJitOption *, void **,
                                unsigned, cudaLibraryOption *, void **, unsigned) {
  return api(__func__, [&](State &) {
    *library = handleOf<cudaLibrary_t>(const_cast<char *>(&kPtxKernel));
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *) {
  return api(__func__, [&](State &) {
    *kernel = reinterpret_cast<cudaKernel_t>(library);
    return cudaSuccess;
  });
}
