// Memory limits: what may still be taken on a device is asked before anything is allocated.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <mutex>
#include <string>

namespace cgc {

/// Bytes of host memory that this process can still get: the least of what the system has
/// available, what the process's cgroups allow, and RLIMIT_AS. UINT64_MAX where none of them says.
/// `root` stands before the paths of /proc and /sys, for tests.
uint64_t availableHostMemory(const std::string &root = "");

/// What an engine and its contexts take of a device's memory, counted before it is allocated.
/// Thread-safe.
class MemoryBudget final {
public:
  /// Of the current device, if it is Cuda. `limit` is in bytes and for everything that is counted;
  /// 0: each request is compared with the memory that is free at that moment.
  MemoryBudget(DeviceKind device, uint64_t limit) : device_(device), limit_(limit) {}

  /// Counts `bytes`. OutOfMemory with both numbers, and nothing is counted, if they pass the limit;
  /// Device if the GPU cannot be asked.
  Status reserve(uint64_t bytes);
  /// Counts `bytes` that exist already: they are held against a limit, and are none of what the
  /// device still has free.
  Status reserveMapped(uint64_t bytes) { return limit_ == 0 ? Status::ok() : reserve(bytes); }
  void release(uint64_t bytes);

private:
  const DeviceKind device_;
  const uint64_t limit_;
  std::mutex mutex_;
  uint64_t reserved_ = 0; ///< Only if there is a limit.
};

/// "the GPU has 3.2 GB of 143 GB free", or of the host; empty if it cannot be asked.
std::string freeMemoryText(DeviceKind device);

} // namespace cgc
