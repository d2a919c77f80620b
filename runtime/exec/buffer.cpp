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
    // calloc gets zero pages from the system, which provides each one when it is first touched.
    // calloc has no alignment parameter, so the buffer begins at the first aligned address.
    const auto room = checkedAdd(bytes, kBufferAlignment);
    void *memory = room ? std::calloc(1, *room) : nullptr;
    if (!memory)
      return Status(Code::OutOfMemory, "cannot allocate " + byteText(bytes) + " of host memory");
    const auto address = reinterpret_cast<uintptr_t>(memory);
    return Buffer(memory, *alignUp(address, kBufferAlignment) - address, bytes,
                  [](void *p) { std::free(p); });
  }
  void *data = nullptr;
  // cudaMalloc aligns to at least 256 bytes. The size is not rounded up, so that a memory checker
  // detects accesses past the end.
  CGC_TRY(CGC_CUDA(cudaMalloc(&data, std::max<uint64_t>(bytes, 1)),
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
