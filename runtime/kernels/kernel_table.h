// The kernel library: what kernels this runtime has, how each takes its arguments, and when it
// accepts them.
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

/// One launch as a plan asks for it, with tensors bound to device memory. Dense tensors come with
/// empty strides; an absent optional tensor with null data.
struct KernelArguments {
  std::span<const uint32_t, 3> grid, block;
  uint32_t sharedBytes;
  std::span<const TensorView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
  /// Bit i: reads[i] is a weight, which nothing writes while the plan runs. A kernel may load it
  /// before it waits.
  uint64_t constantReads = 0;
  /// Nothing will be launched: addresses stand for those of a later run, and there may be no driver
  /// to ask.
  bool onlyChecks = false;
};

/// What bind makes of a launch: the bytes of the struct that a kernel takes as its only parameter,
/// and its companion if it has one.
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

  /// A function with the same parameter that is launched right behind the kernel's own, with a
  /// programmatic edge, and runs beside it. The kernel's own launch has `blocks` fewer than the
  /// grid; these are the companion's, or nobody's without a function. The kernel releases it when
  /// it has itself waited for what is ahead, so that the companion need not; and the companion
  /// waits for the kernel before it ends.
  struct Companion {
    const void *function = nullptr;
    uint32_t blocks = 0;
  } companion;

private:
  std::vector<Unit> units_;
};

/// Traits of a kernel are bits.
enum KernelTrait : unsigned {
  /// Touches nothing that another kernel writes or reads before `griddepcontrol.wait`, in every
  /// block: an edge to it may be programmatic. Its companion starts behind that wait.
  kWaits = 1u << 0,
  /// Has code for sm_90a only.
  kHopper = 1u << 1,
  /// The last tensor it writes, the moments of the one before, is there only if something reads it.
  kMoments = 1u << 2,
};

/// A row of kernels.def.
struct Kernel {
  std::string_view name;
  unsigned traits;
  /// The parameter list as text. Its hash is the row's ABI: change the text when the meaning
  /// changes.
  std::string_view parameters;
  uint64_t abiHash;
  size_t reads, writes, ints, floats; ///< How many of each.
  /// The `__global__` function.
  const void *(*function)();
  /// The kernel's parameter, or why it cannot take these arguments without leaving its tensors.
  /// Called with counts that are right; unless `onlyChecks`, with a function that is ready for
  /// launches with this much shared memory, as it may ask the GPU for how many blocks there is
  /// room.
  Result<KernelParameters> (*bind)(const KernelArguments &arguments);
};

/// All kernels, in the order of kernels.def.
std::span<const Kernel> kernels();
/// The kernel called `name`, or null.
const Kernel *findKernel(std::string_view name);

/// FNV-1a; for the ABI hashes.
constexpr uint64_t kernelAbiHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

} // namespace cgc
