// The fake GPU's virtual memory management: the driver functions that cgc looks up by name.
#include "tests/fake_cuda/state.h"

#include <cuda.h>

#include <bit>
#include <cstring>
#include <sys/mman.h>

using namespace cgc::test::fake_cuda;

namespace {

constexpr size_t kGranularity = 2 << 20;
constexpr int kFresh = 0xa5;

std::map<std::byte *, size_t> reservations;

CUresult driver(cudaError_t error) {
  return static_cast<CUresult>(error); // The codes that occur here have equal numbers.
}

CUresult memGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *,
                                     CUmemAllocationGranularity_flags) {
  return driver(api("cuMemGetAllocationGranularity", [&](State &) {
    *granularity = kGranularity;
    return cudaSuccess;
  }));
}

CUresult memAddressReserve(CUdeviceptr *result, size_t bytes, size_t, CUdeviceptr,
                           unsigned long long) {
  return driver(api("cuMemAddressReserve", [&](State &state) {
    state.currentCall().allocates = true;
    if (bytes == 0 || bytes % kGranularity != 0)
      return cudaErrorInvalidValue;
    void *const data =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      return cudaErrorMemoryAllocation;
    reservations.emplace(static_cast<std::byte *>(data), bytes);
    *result = reinterpret_cast<CUdeviceptr>(data);
    return cudaSuccess;
  }));
}

CUresult memAddressFree(CUdeviceptr address, size_t bytes) {
  return driver(freeingApi("cuMemAddressFree", [&](State &state) {
    state.currentCall().allocates = true;
    auto *const data = std::bit_cast<std::byte *>(address);
    const auto found = reservations.find(data);
    if (found == reservations.end() || found->second != bytes || state.findAllocation(data, 1))
      return cudaErrorInvalidValue;
    munmap(data, bytes);
    reservations.erase(found);
    return cudaSuccess;
  }));
}

CUresult memCreate(CUmemGenericAllocationHandle *result, size_t bytes,
                   const CUmemAllocationProp *properties, unsigned long long) {
  return driver(api("cuMemCreate", [&](State &state) {
    state.currentCall().allocates = true;
    const int device = properties->location.id;
    if (bytes == 0 || bytes % kGranularity != 0)
      return cudaErrorInvalidValue;
    const uint64_t used = state.allocatedOn(device), all = state.devices[device].bytes;
    if (used > all || bytes > all - used)
      return cudaErrorMemoryAllocation;
    static CUmemGenericAllocationHandle last = 0;
    state.physical[++last] = {bytes, device};
    *result = last;
    return cudaSuccess;
  }));
}

CUresult memRelease(CUmemGenericAllocationHandle handle) {
  return driver(freeingApi("cuMemRelease", [&](State &state) {
    return state.physical.erase(handle) == 1 ? cudaSuccess : cudaErrorInvalidValue;
  }));
}

CUresult memMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                unsigned long long) {
  return driver(api("cuMemMap", [&](State &state) {
    const auto found = state.physical.find(handle);
    if (found == state.physical.end() || found->second.first != bytes)
      return cudaErrorInvalidValue;
    auto *const data = std::bit_cast<std::byte *>(address);
    state.allocations.emplace(data, Allocation{bytes, found->second.second, false});
    return cudaSuccess;
  }));
}

CUresult memUnmap(CUdeviceptr address, size_t bytes) {
  return driver(freeingApi("cuMemUnmap", [&](State &state) {
    state.currentCall().allocates = true;
    auto *const data = std::bit_cast<std::byte *>(address);
    for (auto at = state.allocations.lower_bound(data);
         at != state.allocations.end() && at->first < data + bytes;)
      at = state.allocations.erase(at);
    mprotect(data, bytes, PROT_NONE); // An access from now on ends the test.
    return cudaSuccess;
  }));
}

CUresult memSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *, size_t) {
  return driver(api("cuMemSetAccess", [&](State &state) {
    auto *const data = std::bit_cast<std::byte *>(address);
    if (!state.findAllocation(data, bytes))
      return cudaErrorInvalidValue;
    mprotect(data, bytes, PROT_READ | PROT_WRITE);
    std::memset(data, kFresh, bytes);
    // Memory that was mapped in pieces is one allocation, of which a copy may take any part.
    const auto at = state.allocations.find(data);
    if (at != state.allocations.begin())
      if (const auto before = std::prev(at);
          before->first + before->second.bytes == data && reservations.contains(before->first)) {
        before->second.bytes += at->second.bytes;
        state.allocations.erase(at);
      }
    return cudaSuccess;
  }));
}

} // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
  return api(__func__, [&](State &) {
    static const std::map<std::string_view, void *> functions = {
        {"cuMemGetAllocationGranularity", reinterpret_cast<void *>(memGetAllocationGranularity)},
        {"cuMemAddressReserve", reinterpret_cast<void *>(memAddressReserve)},
        {"cuMemAddressFree", reinterpret_cast<void *>(memAddressFree)},
        {"cuMemCreate", reinterpret_cast<void *>(memCreate)},
        {"cuMemRelease", reinterpret_cast<void *>(memRelease)},
        {"cuMemMap", reinterpret_cast<void *>(memMap)},
        {"cuMemUnmap", reinterpret_cast<void *>(memUnmap)},
        {"cuMemSetAccess", reinterpret_cast<void *>(memSetAccess)}};
    const auto found = functions.find(name);
    *function = found == functions.end() ? nullptr : found->second;
    if (result)
      *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
