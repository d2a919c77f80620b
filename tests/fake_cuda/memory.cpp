// The fake GPU's memory: allocation, copies and memsets.
#include "tests/fake_cuda/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace cgc::test::fake_cuda;

namespace {

constexpr int kFresh = 0xa5; // The content of fresh memory.
constexpr size_t kAlignment = 256;

std::byte *allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto *data = static_cast<std::byte *>(std::aligned_alloc(kAlignment, rounded));
  std::memset(data, kFresh, bytes);
  return data;
}

/// Whether both addresses are in the kind of memory that `kind` says.
bool fits(const State &state, const void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return state.onDevice(to, bytes) == toDevice && state.onDevice(from, bytes) == fromDevice;
}

} // namespace

cudaError_t cudaMalloc(void **result, size_t bytes) {
  return api(__func__, [&](State &state) -> cudaError_t {
    if (const cudaError_t error = state.refuseInCapture(); error != cudaSuccess)
      return error;
    if (bytes > state.deviceBytes - state.allocatedOnDevice())
      return cudaErrorMemoryAllocation;
    std::byte *data = allocate(bytes);
    state.device.emplace(data, bytes);
    *result = data;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void *data) {
  return freeingApi(__func__, [&](State &state) {
    if (!data)
      return cudaSuccess;
    const auto allocation = state.device.find(static_cast<std::byte *>(data));
    if (allocation == state.device.end())
      return cudaErrorInvalidValue;
    // CUDA may wait for the device here. The fake GPU does not, so that a missing wait shows.
    state.quarantine(allocation->first, allocation->second);
    state.device.erase(allocation);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void **result, size_t bytes) {
  return api(__func__, [&](State &state) -> cudaError_t {
    if (const cudaError_t error = state.refuseInCapture(); error != cudaSuccess)
      return error;
    std::byte *data = allocate(bytes);
    state.pinned.emplace(data, bytes);
    *result = data;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void *data) {
  return freeingApi(__func__, [&](State &state) {
    const auto allocation = state.pinned.find(static_cast<std::byte *>(data));
    if (allocation == state.pinned.end())
      return cudaErrorInvalidValue;
    state.quarantine(allocation->first, allocation->second);
    state.pinned.erase(allocation);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return api(__func__, [&](State &state) {
    *total = state.deviceBytes;
    *free = state.deviceBytes - state.allocatedOnDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api(__func__, [&](State &state) -> cudaError_t {
    if (!fits(state, to, from, bytes, kind))
      return cudaErrorInvalidValue;
    Stream &on = state.stream(stream);
    // A copy from pageable host memory returns after it has read that memory.
    if (kind == cudaMemcpyHostToDevice && !on.capture && !state.isPinned(from)) {
      const auto *source = static_cast<const std::byte *>(from);
      return state.add(stream, [to, staged = std::vector(source, source + bytes)] {
        std::memcpy(to, staged.data(), staged.size());
      });
    }
    const cudaError_t error = state.add(stream, [=] { std::memcpy(to, from, bytes); });
    // A copy to pageable host memory returns after it has written that memory.
    if (kind == cudaMemcpyDeviceToHost && !on.capture && !state.isPinned(to))
      state.run(on);
    return error;
  });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return api(__func__, [&](State &state) -> cudaError_t {
    if (!state.onDevice(to, bytes))
      return cudaErrorInvalidValue;
    return state.add(stream, [=] { std::memset(to, value, bytes); });
  });
}
