// Which bytes of its results a kernel writes, as a trait of its row in kernels.def. Apart from
// kernel_table.h, which device code includes.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A trait beside those of KernelTrait: the kernel writes only rows of its results that the values
/// of its operands choose. Other rows keep what they hold, so that earlier records of a plan have
/// to write them. A kernel without it writes every element of each result, whatever the values of
/// its operands are.
inline constexpr unsigned kWritesRows = 1u << 5;

/// Whether a launch of the kernel writes every byte of every element of its results.
inline bool writesAll(const Kernel &kernel) {
  return !(kernel.traits & kWritesRows);
}

} // namespace cgc
