// The kernel table: which kernels this runtime has, and which launches each accepts. Host code
// only: device/device_kernels.h has the device half.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cgc {

/// The greatest power of two that divides `address`, an address or an offset; 0 for 0.
constexpr uint64_t alignmentOf(uint64_t address) {
  return address & (~address + 1);
}

/// An operand of a launch without its address. Borrows sizes and strides.
struct OperandView {
  DType dtype = DType::F32;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides; ///< In elements. Empty if the tensor is dense.
  /// The address is a multiple of this power of two, in bytes. 0: an optional operand is absent.
  uint64_t alignment = 0;

  bool isPresent() const { return alignment != 0; }
};

/// A launch of a plan as a check sees it: all but the addresses, so that the compiler can ask
/// whether a kernel accepts a launch. Borrows everything.
struct LaunchView {
  std::span<const uint32_t, 3> grid, block;
  uint32_t sharedBytes;
  std::span<const OperandView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
};

/// Traits of a kernel, as bits.
enum KernelTrait : unsigned {
  /// No CTA touches what another kernel writes or reads before griddepcontrol.wait, so an edge to
  /// the kernel may be programmatic. Its tail launch starts after that wait.
  kProgrammaticLaunch = 1u << 0,
  /// Has code for sm_90a only.
  kHopper = 1u << 1,
  /// The last tensor that it writes is optional: the row statistics of the one before it.
  kRowStatistics = 1u << 2,
  /// What it writes may be what it reads: each thread reads its elements before it writes them.
  kOverwritesOperands = 1u << 3,
  /// Takes its tensors any number of times, up to kMaxTensorGroups: reads and writes are those of
  /// the first group, then those of the second, and so on, without absent ones.
  kTensorGroups = 1u << 4,
};

/// The most groups of tensors that one launch of a kernel with kTensorGroups takes.
inline constexpr size_t kMaxTensorGroups = 256;

/// The host half of a row of kernels.def.
struct Kernel {
  std::string_view name;
  unsigned traits;
  /// The parameter list as text. Its hash is the kernel's ABI hash: change the text when the
  /// meaning of an argument changes.
  std::string_view parameters;
  uint64_t abiHash;
  size_t reads, writes, ints, floats; ///< The number of arguments of each kind.
  /// InvalidFile, with the reason, if the launch could access memory outside its tensors or if the
  /// kernel does not support it. The caller has checked the counts of arguments. Needs no GPU.
  Status (*check)(const LaunchView &launch);

  /// Whether `launch` has as many arguments of each kind as the kernel.
  template <class Launch> bool takesCountsOf(const Launch &launch) const {
    return launch.ints.size() == ints && launch.floats.size() == floats &&
           (traits & kTensorGroups
                ? isGroups(launch.reads.size(), launch.writes.size())
                : launch.reads.size() == reads && launch.writes.size() == writes);
  }

private:
  /// Whether these are the tensors of 1 to kMaxTensorGroups groups.
  bool isGroups(size_t numReads, size_t numWrites) const {
    const size_t groups = numWrites / writes;
    return groups >= 1 && groups <= kMaxTensorGroups && numWrites == groups * writes &&
           numReads == groups * reads;
  }
};

/// All kernels, in the order of kernels.def.
std::span<const Kernel> kernels();
/// The kernel called `name`, or null.
const Kernel *findKernel(std::string_view name);

/// The ABI hash of a parameter list.
constexpr uint64_t kernelAbiHash(std::string_view parameters) {
  return fnv1a(parameters);
}

} // namespace cgc
