// Buffer: allocation on host and GPU.
#include "runtime/exec/buffer.h"

#include "runtime/exec/cuda_support.h"
#include "runtime/plan/plan.h"

#include "runtime/base/checked.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace cgc {

Result<Buffer> Buffer::allocate(DeviceKind device, uint64_t bytes) {
  if (device == DeviceKind::Cpu) {
    // calloc has zeros from the system, which fills a page when it is first touched. It knows no
    // alignment: the buffer begins at the first multiple in it.
    const auto room = checkedAdd(bytes, kBufferAlignment);
    void *memory = room ? std::calloc(1, *room) : nullptr;
    if (!memory)
      return Status(Code::OutOfMemory, "cannot allocate " + byteText(bytes) + " of host memory");
    const auto address = reinterpret_cast<uintptr_t>(memory);
    return Buffer(memory, *alignUp(address, kBufferAlignment) - address, bytes,
                  [](void *p) { std::free(p); });
  }
  void *data = nullptr;
  // Aligned to 256 bytes, and not longer than asked for: a memory checker knows its end.
  CGC_TRY(cudaStatus(cudaMalloc(&data, std::max<uint64_t>(bytes, 1)),
                     "cannot allocate " + byteText(bytes) + " of device memory"));
  return Buffer(data, 0, bytes, [](void *p) { (void)cudaFree(p); });
}

std::string byteText(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "kB", "MB", "GB", "TB"};
  double value = bytes;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof(text), "%.*f %s",
                unit == 0    ? 0
                : value < 10 ? 2
                             : 1,
                value, kUnits[unit]);
  return text;
}

} // namespace cgc
