// Guarded memory: each host buffer that the runtime allocates for arenas, inputs and outputs ends
// at an inaccessible page, up to its alignment. That detects overruns by LibTorch's uninstrumented
// code. The rest of the pages is poisoned for AddressSanitizer, and has other bytes beside each
// buffer, so that results differ from run to run if uninstrumented code reads it. The linker
// redirects Buffer::allocate, calloc and free to the functions here (--wrap).
#include "runtime/base/checked.h"
#include "runtime/exec/buffer.h"
#include "runtime/plan/plan.h"
#include "tests/fuzz/require.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Pages {
  std::byte *begin;
  size_t bytes;
};
std::mutex mutex;
std::map<void *, Pages> &allocations() {
  static auto *const map = new std::map<void *, Pages>; // Never destroyed.
  return *map;
}

thread_local bool isInBuffer = false; ///< In Buffer::allocate.

} // namespace

cgc::Result<cgc::Buffer> realAllocate(cgc::DeviceKind device, uint64_t bytes) //
    asm("__real__ZN3cgc6Buffer8allocateENS_10DeviceKindEm");
cgc::Result<cgc::Buffer> wrapAllocate(cgc::DeviceKind device, uint64_t bytes) //
    asm("__wrap__ZN3cgc6Buffer8allocateENS_10DeviceKindEm");
extern "C" void *__real_calloc(size_t count, size_t elementBytes);
extern "C" void __real_free(void *data);

cgc::Result<cgc::Buffer> wrapAllocate(cgc::DeviceKind device, uint64_t bytes) {
  isInBuffer = true;
  cgc::Result<cgc::Buffer> buffer = realAllocate(device, bytes);
  isInBuffer = false;
  return buffer;
}

extern "C" void *__wrap_calloc(size_t count, size_t elementBytes) {
  if (!isInBuffer)
    return __real_calloc(count, elementBytes);
  // Buffer::allocate asks for room for the alignment, which it does not need here.
  CGC_REQUIRE(count == 1 && elementBytes >= cgc::kBufferAlignment, "Buffer::allocate has changed");
  const size_t bytes = elementBytes - cgc::kBufferAlignment;
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  const auto usable = cgc::alignUp(bytes, page);
  const auto all = usable ? cgc::checkedAdd(*usable, page) : std::nullopt;
  void *const mapped = all ? ::mmap(nullptr, *all, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : MAP_FAILED;
  if (mapped == MAP_FAILED)
    return nullptr;
  auto *const begin = static_cast<std::byte *>(mapped), *const guard = begin + *usable;
  CGC_REQUIRE(::mprotect(guard, page, PROT_NONE) == 0, std::strerror(errno));
  std::byte *const data = guard - *cgc::alignUp(bytes, cgc::kBufferAlignment), *const end =
                                                                                   data + bytes;
  static std::atomic<int> other = 0;
  const int beside = ++other;
  std::memset(begin, beside, data - begin);
  std::memset(end, beside, guard - end);
  ASAN_POISON_MEMORY_REGION(begin, data - begin);
  ASAN_POISON_MEMORY_REGION(end, guard - end);
  const std::lock_guard lock(mutex);
  allocations()[data] = {begin, *all};
  return data;
}

extern "C" void __wrap_free(void *data) {
  {
    const std::lock_guard lock(mutex);
    if (const auto it = allocations().find(data); it != allocations().end()) {
      ASAN_UNPOISON_MEMORY_REGION(it->second.begin, it->second.bytes);
      ::munmap(it->second.begin, it->second.bytes);
      allocations().erase(it);
      return;
    }
  }
  __real_free(data);
}
