// The fake GPU's memory: allocation, and which device an address belongs to.
#include "tests/fake_cuda/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cgc::test::fake_cuda {
namespace {

constexpr int kFresh = 0xa5, kFreed = 0xdd; // The content of fresh and of freed memory.
constexpr size_t kAlignment = 256;
/// Freed memory that is kept from being reused, so that late accesses find the poison.
constexpr uint64_t kQuarantine = uint64_t(64) << 20;

cudaError_t allocate(State &state, void **result, size_t bytes, bool isPinned,
                     bool isManaged = false) {
  state.currentCall().allocates = true;
  if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
    return error;
  *result = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  const int device = thisThread.device;
  if (!isPinned && !state.hasRoom(device, bytes))
    return cudaErrorMemoryAllocation;
  // Not std::aligned_alloc, whose sizes are multiples of the alignment: AddressSanitizer then finds
  // an access to the first byte past the end.
  void *data = nullptr;
  if (posix_memalign(&data, kAlignment, bytes) != 0)
    return cudaErrorMemoryAllocation;
  std::memset(data, kFresh, bytes);
  state.allocations.emplace(static_cast<std::byte *>(data),
                            Allocation{bytes, device, isPinned, isManaged});
  *result = data;
  return cudaSuccess;
}

cudaError_t release(State &state, void *data, bool isPinned) {
  state.currentCall().allocates = true;
  if (!data)
    return cudaSuccess;
  if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
    return error;
  const auto at = state.allocations.find(static_cast<std::byte *>(data));
  if (at == state.allocations.end() || at->second.isPinned != isPinned)
    return cudaErrorInvalidValue;
  // CUDA may wait for the device here. The fake GPU does not, so that a missing wait shows.
  std::memset(at->first, kFreed, at->second.bytes);
  state.freedBytes += at->second.bytes;
  state.freed.emplace_back(std::unique_ptr<std::byte, Free>(at->first), at->second.bytes);
  while (state.freedBytes > kQuarantine) {
    state.freedBytes -= state.freed.front().second;
    state.freed.pop_front();
  }
  state.allocations.erase(at);
  return cudaSuccess;
}

} // namespace

uint64_t State::allocatedOn(int device) const {
  uint64_t bytes = 0;
  for (const auto &[address, allocation] : allocations)
    if (!allocation.isPinned && allocation.device == device)
      bytes += allocation.bytes;
  for (const auto &[address, exec] : execs)
    if (exec->device == device)
      bytes += exec->bytes;
  return bytes;
}

bool State::hasRoom(int device, uint64_t bytes) const {
  const uint64_t used = allocatedOn(device), all = devices[device].bytes;
  return used <= all && bytes <= all - used;
}

const Allocation *State::findAllocation(const void *data, uint64_t bytes) const {
  auto *const begin = static_cast<std::byte *>(const_cast<void *>(data));
  const auto after = allocations.upper_bound(begin);
  if (after == allocations.begin())
    return nullptr;
  const auto &[address, allocation] = *std::prev(after);
  const uint64_t offset = begin - address;
  return offset < allocation.bytes && bytes <= allocation.bytes - offset ? &allocation : nullptr;
}

int State::deviceOf(const void *data, uint64_t bytes) const {
  const Allocation *const allocation = findAllocation(data, bytes);
  return allocation && !allocation->isPinned ? allocation->device : -1;
}

bool State::isFreed(const void *data) const {
  const auto *const address = static_cast<const std::byte *>(data);
  return std::ranges::any_of(freed, [&](const auto &memory) {
    return address >= memory.first.get() && address < memory.first.get() + memory.second;
  });
}

bool State::isManaged(const void *data, uint64_t bytes) const {
  const Allocation *const allocation = findAllocation(data, bytes);
  return allocation && allocation->isManaged;
}

bool State::isAccessible(int device, const void *data, uint64_t bytes) const {
  const Allocation *const allocation = findAllocation(data, bytes);
  return allocation &&
         (allocation->isPinned || allocation->isManaged || allocation->device == device ||
          devices[device].peers.contains(allocation->device));
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaMalloc(void **result, size_t bytes) {
  return api(__func__, [&](State &state) { return allocate(state, result, bytes, false); });
}

cudaError_t cudaMallocManaged(void **result, size_t bytes, unsigned) {
  return api(__func__, [&](State &state) {
    return allocate(state, result, bytes, /*isPinned=*/false, /*isManaged=*/true);
  });
}

cudaError_t cudaFree(void *data) {
  return freeingApi(__func__, [&](State &state) { return release(state, data, false); });
}

cudaError_t cudaMallocHost(void **result, size_t bytes) {
  return api(__func__, [&](State &state) { return allocate(state, result, bytes, true); });
}

cudaError_t cudaHostAlloc(void **result, size_t bytes, unsigned) {
  return api(__func__, [&](State &state) { return allocate(state, result, bytes, true); });
}

cudaError_t cudaFreeHost(void *data) {
  return freeingApi(__func__, [&](State &state) { return release(state, data, true); });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return api(__func__, [&](State &state) {
    const uint64_t used = state.allocatedOn(thisThread.device);
    *total = state.devices[thisThread.device].bytes;
    *free = *total - std::min<uint64_t>(*total, used);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *data) {
  return api(__func__, [&](State &state) {
    *attributes = {};
    const Allocation *const allocation = state.findAllocation(data, 1);
    attributes->type = !allocation             ? cudaMemoryTypeUnregistered
                       : allocation->isPinned  ? cudaMemoryTypeHost
                       : allocation->isManaged ? cudaMemoryTypeManaged
                                               : cudaMemoryTypeDevice;
    attributes->device = allocation ? allocation->device : cudaInvalidDeviceId;
    auto *const address = const_cast<void *>(data);
    if (state.isAccessible(thisThread.device, data, 1))
      attributes->devicePointer = address;
    if (!allocation || allocation->isPinned || allocation->isManaged)
      attributes->hostPointer = address;
    return cudaSuccess;
  });
}
