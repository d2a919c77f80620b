// The kernel table: which kernels this runtime has, and how each checks and takes its arguments.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cgc {

/// A launch of a plan, with tensors bound to device memory. Dense tensors have empty strides; an
/// absent optional tensor has null data. Borrows everything for the duration of bind.
struct KernelArguments {
  std::span<const uint32_t, 3> grid, block;
  uint32_t sharedBytes;
  std::span<const TensorView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
  /// Bit i: reads[i] is a weight, which nothing writes while the plan runs, so a kernel may load it
  /// before griddepcontrol.wait.
  uint64_t constantReads = 0;
  /// Whether bind only checks: nothing will be launched, addresses are placeholders, and there may
  /// be no driver.
  bool onlyChecks = false;
};

/// The result of bind: the bytes of the struct that a kernel takes as its only parameter, and its
/// tail launch if it has one.
class KernelParameters final {
  struct alignas(128) Unit { // A tensor map has to lie at a multiple of 128 bytes.
    unsigned char bytes[128];
  };

public:
  KernelParameters() = default;
  template <class T>
  explicit KernelParameters(const T &parameters) : units_(sizeof(T) / sizeof(Unit) + 1) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(Unit) &&
                  sizeof(T) <= 4096);
    std::memcpy(units_.data(), &parameters, sizeof(T));
  }
  void *data() { return units_.data(); }

  /// A second launch, with the same parameter, right after the kernel's own and behind a
  /// programmatic edge, which runs concurrently with it. The kernel's own grid has `blocks` CTAs
  /// fewer than the record's; the tail launch has these, or nobody if `function` is null. The
  /// kernel releases the tail launch after its own griddepcontrol.wait, so that the tail launch
  /// need not wait before it reads. The tail launch waits for the kernel before it exits.
  struct TailLaunch {
    const void *function = nullptr;
    uint32_t blocks = 0;
  } tail;

private:
  std::vector<Unit> units_;
};

/// Traits of a kernel, as bits.
enum KernelTrait : unsigned {
  /// No CTA touches what another kernel writes or reads before griddepcontrol.wait, so an edge to
  /// the kernel may be programmatic. Its tail launch starts after that wait.
  kWaits = 1u << 0,
  /// Has code for sm_90a only.
  kHopper = 1u << 1,
  /// The last tensor that it writes is optional: the row statistics of the one before it.
  kRowStatistics = 1u << 2,
};

/// A row of kernels.def.
struct Kernel {
  std::string_view name;
  unsigned traits;
  /// The parameter list as text. Its hash is the kernel's ABI hash: change the text when the
  /// meaning of an argument changes.
  std::string_view parameters;
  uint64_t abiHash;
  size_t reads, writes, ints, floats; ///< The number of arguments of each kind.
  /// The `__global__` function.
  const void *(*function)();
  /// Builds the kernel's parameter. InvalidFile, with the reason, if the launch could access memory
  /// outside its tensors. The caller has checked the counts of arguments. Unless `onlyChecks`, the
  /// function is configured for this much shared memory, because bind may query its occupancy.
  Result<KernelParameters> (*bind)(const KernelArguments &arguments);
};

/// All kernels, in the order of kernels.def.
std::span<const Kernel> kernels();
/// The kernel called `name`, or null.
const Kernel *findKernel(std::string_view name);

/// The ABI hash of a parameter list: FNV-1a.
constexpr uint64_t kernelAbiHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

} // namespace cgc
