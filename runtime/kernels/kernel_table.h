// The kernel library: what kernels this runtime has, how each takes its arguments, and when it
// accepts them.
#pragma once

#include "runtime/base/tensor_view.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace cgc {

/// One launch as a plan asks for it, with tensors bound to device memory. Dense tensors come with
/// empty strides; an absent optional tensor with null data.
struct KernelArguments {
  std::span<const uint32_t, 3> grid, block;
  uint32_t sharedBytes;
  std::span<const TensorView> reads, writes;
  std::span<const int64_t> ints;
  std::span<const double> floats;
};

/// A row of kernels.def.
struct Kernel {
  std::string_view name;
  /// The parameter list as text. Its hash is the row's ABI: change the text when the meaning
  /// changes.
  std::string_view parameters;
  uint64_t abiHash;
  size_t reads, writes, ints, floats; ///< How many of each.
  /// The `__global__` function, for cudaLaunchKernel: pointers (reads first), then int64_t, then
  /// double.
  const void *(*function)();
  /// Why the kernel cannot take these arguments without leaving its tensors; empty if it can.
  /// Called with counts that are right.
  std::string_view (*check)(const KernelArguments &arguments);
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
