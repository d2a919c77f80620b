// The fake GPU's properties, errors and kernels, which cannot be launched.
#include "tests/fake_cuda/state.h"

#include <cstring>
#include <utility>
#include <vector_types.h>

using namespace cgc::test::fake_cuda;

namespace {

constexpr int kDriverVersion = CUDART_VERSION;

} // namespace

cudaError_t cudaDriverGetVersion(int *version) {
  return api(__func__, [&](State &) {
    *version = kDriverVersion;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int *count) {
  return api(__func__, [&](State &) {
    *count = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int *device) {
  return api(__func__, [&](State &) {
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return api(__func__, [&](State &) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  return api(__func__, [&](State &state) {
    if (device != 0)
      return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "Fake GPU");
    properties->major = 9;
    properties->multiProcessorCount = 132;
    properties->totalGlobalMem = state.deviceBytes;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  return api(__func__, [&](State &) {
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
    }
  });
}

cudaError_t cudaGetLastError() {
  return std::exchange(lastError, cudaSuccess);
}

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define CGC_NAME(code)                                                                             \
  case code:                                                                                       \
    return #code;
    CGC_NAME(cudaErrorMemoryAllocation)
    CGC_NAME(cudaErrorInvalidValue)
    CGC_NAME(cudaErrorInvalidDeviceFunction)
    CGC_NAME(cudaErrorIllegalAddress)
    CGC_NAME(cudaErrorNotSupported)
    CGC_NAME(cudaErrorStreamCaptureUnsupported)
    CGC_NAME(cudaErrorStreamCaptureInvalidated)
    CGC_NAME(cudaErrorStreamCaptureIsolation)
#undef CGC_NAME
  default:
    return "cudaErrorOther";
  }
}

const char *cudaGetErrorString(cudaError_t) {
  return "a fault of the fake GPU";
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
  return api(__func__, [&](State &) {
    *function = nullptr;
    *found = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *) {
  return api(__func__, [](State &) { return cudaErrorInvalidDeviceFunction; });
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) {
  return api(__func__, [](State &) { return cudaErrorInvalidDeviceFunction; });
}

cudaError_t cudaOccupancyMaxActiveClusters(int *, const void *, const cudaLaunchConfig_t *) {
  return api(__func__, [](State &) { return cudaErrorInvalidDeviceFunction; });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) {
  return api(__func__, [](State &) { return cudaErrorInvalidDeviceFunction; });
}

// The functions that nvcc's host code calls to register its kernels when the program starts.
extern "C" {
void **__cudaRegisterFatBinary(void *) {
  static void *handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *) {
  return cudaErrorInvalidDeviceFunction;
}
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *) {
  return cudaErrorInvalidDeviceFunction;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t) {
  return cudaErrorInvalidDeviceFunction;
}
}
