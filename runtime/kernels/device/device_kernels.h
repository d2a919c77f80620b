// The device half of the kernel table: the code of each kernel, and how it takes its arguments.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <cstring>
#include <type_traits>
#include <vector>

namespace cgc {

/// The addresses of a launch's operands, in the order of LaunchView; null for an absent operand.
struct LaunchAddresses {
  std::span<void *const> reads, writes;
  /// Bit i: reads[i], one of the first 64, is a weight, which nothing writes while the plan runs,
  /// so a kernel may load it before griddepcontrol.wait.
  uint64_t constantReads = 0;

  bool isConstant(size_t read) const { return constantReads >> read & 1; }
};

/// The most bytes of a kernel's parameter: what CUDA 12.1 and later take on sm_70 and later.
inline constexpr size_t kMaxParameterBytes = 32764;

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
                  sizeof(T) <= kMaxParameterBytes);
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

/// The device half of a row of kernels.def.
struct DeviceKernel {
  /// The `__global__` function.
  const void *(*function)();
  /// Builds the kernel's parameter for a launch that Kernel::check has accepted, at addresses whose
  /// alignments it was told. The function is configured for the launch's shared memory, because
  /// bind may query its occupancy. Device if the driver or the GPU cannot run the launch.
  Result<KernelParameters> (*bind)(const LaunchView &launch, const LaunchAddresses &at);
};

/// The device half of `kernel`, which is a row of kernels().
const DeviceKernel &deviceKernel(const Kernel &kernel);

} // namespace cgc
