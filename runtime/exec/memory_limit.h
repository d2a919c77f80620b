// Memory limits: a request for memory is checked against them before anything is allocated.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>

namespace cgc {

/// The bytes of host memory that this process can still get: the least of the system's available
/// memory, the limits of the process's cgroups, and RLIMIT_AS. UINT64_MAX if none of them is known.
/// `root` is a prefix of the paths under /proc and /sys, for tests.
uint64_t availableHostMemory(const std::string &root = "");

/// Counts the memory of an engine and its contexts before it is allocated. Thread-safe.
///
/// With limit 0 each request is compared with the memory that is free at that moment. Host memory
/// that earlier contexts have requested but not yet touched (calloc) still counts as free then, so
/// contexts may be created that together need more memory than the host has.
class MemoryBudget final {
public:
  /// A budget for `device`; for Cuda, the device that is current at each call. `limit` is in bytes
  /// and applies to the sum of all reservations; 0 means no limit of its own, as described above.
  MemoryBudget(DeviceKind device, uint64_t limit) : device_(device), limit_(limit) {}

  /// Reserves `bytes`. OutOfMemory, with the bytes requested and available, if they exceed the
  /// limit or the free memory; nothing is reserved then. Device if the GPU's free memory cannot be
  /// queried.
  Status reserve(uint64_t bytes);
  /// Reserves `bytes` that are already mapped. They count against a limit, but need none of the
  /// memory that is free.
  Status reserveMapped(uint64_t bytes);
  /// Returns `bytes` that reserve() or reserveMapped() has granted.
  void release(uint64_t bytes);
  /// Counts `bytes` that the driver took, for which no limit holds, or that it gave back.
  void addDriver(uint64_t bytes);
  void removeDriver(uint64_t bytes);
  /// The most bytes that were reserved, or the driver's, at a time.
  uint64_t peak() const;

private:
  /// Updates the peak with the lock held.
  void notePeak() { peak_ = std::max(peak_, reserved_ + driver_); }
  const DeviceKind device_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  uint64_t reserved_ = 0, driver_ = 0, peak_ = 0;
};

/// The free memory of the current GPU in bytes.
Result<uint64_t> freeGpuMemory();

/// The free memory of `device` for messages, such as "the GPU has 3.2 GB of 143 GB free". Empty if
/// it cannot be queried.
std::string freeMemoryText(DeviceKind device);

} // namespace cgc
