// KernelId: the rows of kernels.def as values.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A row of kernels.def. Not part of the plan format: a plan has the row's name.
enum class KernelId : uint16_t {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS) NAME,
#include "runtime/kernels/kernels.def"
};

inline const Kernel &kernelOf(KernelId id) {
  return kernels()[size_t(id)];
}

} // namespace cgc
