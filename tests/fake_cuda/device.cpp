// The fake GPU's devices: how many, which is current, their properties, and access to peers.
#include "tests/fake_cuda/state.h"

#include <cstring>

using namespace cgc::test::fake_cuda;

namespace {

constexpr int kMultiprocessors = 132;
constexpr int kSharedBytes = 227 << 10; ///< That a block may have.

bool exists(const State &state, int device) {
  return device >= 0 && device < state.deviceCount;
}

} // namespace

cudaError_t cudaDriverGetVersion(int *version) {
  return api(__func__, [&](State &) {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  return cudaDriverGetVersion(version);
}

cudaError_t cudaGetDeviceCount(int *count) {
  return api(__func__, [&](State &state) {
    *count = state.deviceCount;
    return state.deviceCount > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaGetDevice(int *device) {
  return api(__func__, [&](State &) {
    *device = thisThread.device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return api(__func__, [&](State &state) {
    if (!exists(state, device))
      return cudaErrorInvalidDevice;
    thisThread.device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  return api(__func__, [&](State &state) {
    if (!exists(state, device))
      return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "Fake GPU");
    properties->major = state.major;
    properties->multiProcessorCount = kMultiprocessors;
    properties->totalGlobalMem = state.devices[device].bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  return api(__func__, [&](State &state) {
    if (!exists(state, device))
      return cudaErrorInvalidDevice;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kSharedBytes;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = state.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
    }
  });
}

cudaError_t cudaDeviceSynchronize() {
  return api(__func__, [](State &state) -> cudaError_t {
    for (const std::shared_ptr<Capture> &capture : state.captures)
      for (const Stream *stream : capture->streams)
        if (stream->device == thisThread.device) {
          capture->isInvalidated = true;
          return cudaErrorStreamCaptureUnsupported;
        }
    if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
      return error;
    state.currentCall().waits = true;
    state.completeDevice(thisThread.device);
    return state.sticky;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  return api(__func__, [&](State &state) {
    if (!exists(state, device) || !exists(state, peer))
      return cudaErrorInvalidDevice;
    *can = device != peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return api(__func__, [&](State &state) {
    if (!exists(state, peer) || peer == thisThread.device)
      return cudaErrorInvalidDevice;
    return state.devices[thisThread.device].peers.insert(peer).second
               ? cudaSuccess
               : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return api(__func__, [&](State &state) {
    return state.devices[thisThread.device].peers.erase(peer) ? cudaSuccess
                                                              : cudaErrorPeerAccessNotEnabled;
  });
}
