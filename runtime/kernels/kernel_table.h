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
  /// Takes any number of groups of tensors, up to kMaxTensorGroups: see tensorGroups().
  kTensorGroups = 1u << 4,
  /// Writes only rows of its results that the values of its operands choose. Other rows keep what
  /// they hold, so that earlier records of a plan have to write them. A kernel without it writes
  /// every element of each result, whatever the values of its operands are.
  kWritesRows = 1u << 5,
};

/// The most groups of tensors that one launch of a kernel with kTensorGroups takes.
inline constexpr size_t kMaxTensorGroups = 256;

/// The trait of a kernel that takes groups of tensors. The last `reads` reads and `writes` writes
/// of its row are a group; those before them are shared by all groups. A launch has the shared
/// tensors, then those of each group. What a group writes may be what it reads itself, if the
/// kernel has kOverwritesOperands, but not what another group reads: groups have no order.
constexpr unsigned tensorGroups(unsigned reads, unsigned writes) {
  return kTensorGroups | reads << 16 | writes << 24;
}

/// The host half of a row of kernels.def.
struct Kernel {
  std::string_view name;
  unsigned traits;
  /// The parameter list as text. Its hash is the kernel's ABI hash: change the text when the
  /// meaning of an argument changes.
  std::string_view parameters;
  uint64_t abiHash;
  size_t reads, writes, ints, floats; ///< The number of arguments of each kind, with one group.
  /// InvalidFile, with the reason, if the launch could access memory outside its tensors or if the
  /// kernel does not support it. The caller has checked the counts of arguments. Needs no GPU.
  Status (*check)(const LaunchView &launch);

  /// The tensors of a group; 0 without kTensorGroups.
  size_t groupReads() const { return traits >> 16 & 0xff; }
  size_t groupWrites() const { return traits >> 24; }

  /// Whether `launch` has as many arguments of each kind as the kernel.
  template <class Launch> bool takesCountsOf(const Launch &launch) const {
    return launch.ints.size() == ints && launch.floats.size() == floats &&
           (traits & kTensorGroups
                ? isGroups(launch.reads.size(), launch.writes.size())
                : launch.reads.size() == reads && launch.writes.size() == writes);
  }

  /// Whether a launch writes every byte of every element of its results.
  bool writesAll() const { return !(traits & kWritesRows); }

  /// Whether write `write` of a launch may have the memory of its read `read`.
  bool mayOverwrite(size_t write, size_t read) const {
    const size_t sharedReads = reads - groupReads(), sharedWrites = writes - groupWrites();
    if (!(traits & kOverwritesOperands) || !(traits & kTensorGroups))
      return traits & kOverwritesOperands;
    return read >= sharedReads && write >= sharedWrites &&
           (read - sharedReads) / groupReads() == (write - sharedWrites) / groupWrites();
  }

private:
  /// Whether these are the tensors of 1 to kMaxTensorGroups groups.
  bool isGroups(size_t numReads, size_t numWrites) const {
    const size_t more = numReads < reads ? kMaxTensorGroups : (numReads - reads) / groupReads();
    return more < kMaxTensorGroups && numReads == reads + more * groupReads() &&
           numWrites == writes + more * groupWrites();
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
