// Builds the host half of the kernel table from kernels.def.
#include "runtime/kernels/kernel_table.h"

#include <algorithm>
#include <iterator>

namespace cgc {

#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  Status NAME##Check(const LaunchView &launch);
#include "runtime/kernels/kernels.def"

namespace {
constexpr Kernel kKernels[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {#NAME, TRAITS, PARAMETERS, kernelAbiHash(PARAMETERS), READS, WRITES, INTS, FLOATS, NAME##Check},
#include "runtime/kernels/kernels.def"
};
} // namespace

std::span<const Kernel> kernels() {
  return kKernels;
}

const Kernel *findKernel(std::string_view name) {
  const auto it = std::find_if(std::begin(kKernels), std::end(kKernels),
                               [&](const Kernel &kernel) { return kernel.name == name; });
  return it == std::end(kKernels) ? nullptr : it;
}

} // namespace cgc
