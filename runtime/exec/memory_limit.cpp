// MemoryBudget, and queries of the free memory of host and GPU.
#include "runtime/exec/memory_limit.h"

#include "runtime/base/checked.h"
#include "runtime/exec/buffer.h"
#include "runtime/exec/cuda_support.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>

namespace cgc {
namespace {

std::optional<uint64_t> toNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// The number after `key` in the first line of the file that starts with `key`; std::nullopt if
/// there is none.
std::optional<uint64_t> numberIn(const std::string &path, std::string_view key = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key))
      return toNumber(std::string_view(line).substr(key.size()));
  return std::nullopt;
}

/// The file names and keys of one version of cgroups. Cached file pages are listed as active and
/// inactive.
struct CgroupFiles {
  const char *limit, *usage, *activeFile, *inactiveFile;
};
constexpr CgroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                   "total_active_file ", "total_inactive_file "};
constexpr CgroupFiles kVersion2 = {"/memory.max", "/memory.current", "active_file ",
                                   "inactive_file "};

/// The bytes that the cgroup in `folder` still allows. Cached file pages do not count as used,
/// because the kernel drops them under pressure.
uint64_t availableInCgroup(const std::string &folder, const CgroupFiles &files) {
  const auto limit = numberIn(folder + files.limit), usage = numberIn(folder + files.usage);
  if (!limit || !usage)
    return UINT64_MAX;
  const std::string statistics = folder + "/memory.stat";
  const uint64_t cached = numberIn(statistics, files.activeFile).value_or(0) +
                          numberIn(statistics, files.inactiveFile).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cached);
  return *limit - std::min(*limit, used);
}

/// The least that the process's cgroups and their ancestors allow.
uint64_t availableInCgroups(const std::string &root) {
  uint64_t available = UINT64_MAX;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // Format: number:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool isVersion2 = controllers == ",,";
    if (!isVersion2 && controllers.find(",memory,") == std::string::npos)
      continue;
    const std::string mount = root + (isVersion2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    // In a container a cgroup's folder may be invisible; the mount's root then has its limits.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      available =
          std::min(available, availableInCgroup(mount + path, isVersion2 ? kVersion2 : kVersion1));
      if (path.find('/') == std::string::npos)
        break;
    }
  }
  return available;
}

/// The address space that RLIMIT_AS leaves.
uint64_t availableAddresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  const uint64_t used =
      numberIn("/proc/self/statm").value_or(0) * uint64_t(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

/// Memory of the current GPU, in bytes.
struct GpuMemory {
  size_t free = 0, total = 0;
};
Result<GpuMemory> gpuMemory() {
  GpuMemory memory;
  CGC_TRY(CGC_CUDA(cudaMemGetInfo(&memory.free, &memory.total),
                   "cannot ask for the GPU's free memory"));
  return memory;
}

Result<uint64_t> availableOn(DeviceKind device) {
  if (device == DeviceKind::Cpu)
    return availableHostMemory();
  return freeGpuMemory();
}

} // namespace

uint64_t availableHostMemory(const std::string &root) {
  const auto kilobytes = numberIn(root + "/proc/meminfo", "MemAvailable:");
  const uint64_t system = kilobytes ? *kilobytes * 1024 : UINT64_MAX;
  return std::min({system, availableInCgroups(root), availableAddresses()});
}

Status MemoryBudget::reserve(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto needs = [&] { return byteText(bytes) + " more are needed, and "; };
  if (limit_ == 0) {
    CGC_ASSIGN_OR_RETURN(const uint64_t available, availableOn(device_));
    if (bytes > available)
      return {Code::OutOfMemory, needs() + freeMemoryText(device_)};
  } else if (!rangeInside(reserved_, bytes, limit_)) {
    return {Code::OutOfMemory, needs() + "of the memory limit of " + byteText(limit_) + " " +
                                   byteText(reserved_) + " are taken"};
  }
  reserved_ += bytes;
  notePeak();
  return Status::ok();
}

Status MemoryBudget::reserveMapped(uint64_t bytes) {
  if (limit_ > 0)
    return reserve(bytes);
  const std::lock_guard lock(mutex_);
  reserved_ += bytes;
  notePeak();
  return Status::ok();
}

void MemoryBudget::release(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ -= std::min(reserved_, bytes);
}

void MemoryBudget::addDriver(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  driver_ += bytes;
  notePeak();
}

void MemoryBudget::removeDriver(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  driver_ -= std::min(driver_, bytes);
}

uint64_t MemoryBudget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

Result<uint64_t> freeGpuMemory() {
  CGC_ASSIGN_OR_RETURN(const GpuMemory memory, gpuMemory());
  return memory.free;
}

std::string freeMemoryText(DeviceKind device) {
  if (device == DeviceKind::Cpu) {
    const uint64_t available = availableHostMemory();
    return available == UINT64_MAX ? ""
                                   : "the host has " + byteText(available) + " for this process";
  }
  const auto memory = gpuMemory();
  return memory
             ? "the GPU has " + byteText(memory->free) + " of " + byteText(memory->total) + " free"
             : "";
}

} // namespace cgc
