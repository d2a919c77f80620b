// Guarded memory: puts an inaccessible page right after (up to alignment) each host buffer that the
// runtime allocates for arenas, inputs and outputs. It also detects overruns by LibTorch's
// uninstrumented code. The linker redirects calloc and free to __wrap_calloc and __wrap_free
// (--wrap).
#include "runtime/base/checked.h"
#include "tests/fuzz/require.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Pages {
  void *begin;
  size_t bytes;
};
std::mutex mutex;
std::map<void *, Pages> &allocations() {
  static auto *const map = new std::map<void *, Pages>; // Never destroyed.
  return *map;
}

} // namespace

extern "C" void __real_free(void *data);

extern "C" void *__wrap_calloc(size_t count, size_t elementBytes) {
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  const auto bytes = cgc::checkedMul(count, elementBytes);
  const auto usable = bytes ? cgc::alignUp(*bytes, page) : std::nullopt;
  const auto all = usable ? cgc::checkedAdd(*usable, page) : std::nullopt;
  void *const begin = all ? ::mmap(nullptr, *all, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                          : MAP_FAILED;
  if (begin == MAP_FAILED)
    return nullptr;
  std::byte *const guard = static_cast<std::byte *>(begin) + *usable;
  CGC_REQUIRE(::mprotect(guard, page, PROT_NONE) == 0, std::strerror(errno));
  void *const data = guard - *cgc::alignUp(*bytes, alignof(std::max_align_t));
  const std::lock_guard lock(mutex);
  allocations()[data] = {begin, *all};
  return data;
}

extern "C" void __wrap_free(void *data) {
  {
    const std::lock_guard lock(mutex);
    if (const auto it = allocations().find(data); it != allocations().end()) {
      ::munmap(it->second.begin, it->second.bytes);
      allocations().erase(it);
      return;
    }
  }
  __real_free(data);
}
