// The kernel table, from kernels.def.
#include "runtime/kernels/kernel_table.h"

#include <algorithm>
#include <array>

namespace cgc {

#define CGC_KERNEL(NAME, READS, WRITES, INTS, FLOATS, PARAMETERS)                                  \
  const void *NAME##Function();                                                                    \
  std::string_view NAME##Check(const KernelArguments &arguments);
#include "runtime/kernels/kernels.def"

namespace {
constexpr Kernel kKernels[] = {
#define CGC_KERNEL(NAME, READS, WRITES, INTS, FLOATS, PARAMETERS)                                  \
  {#NAME,          PARAMETERS, kernelAbiHash(PARAMETERS), READS, WRITES, INTS, FLOATS,             \
   NAME##Function, NAME##Check},
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
