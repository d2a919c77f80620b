// Builds the device half of the kernel table from kernels.def.
#include "runtime/kernels/device/device_kernels.h"

namespace cgc {

#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  const void *NAME##Function();                                                                    \
  Result<KernelParameters> NAME##Bind(const LaunchView &launch, const LaunchAddresses &at);
#include "runtime/kernels/kernels.def"

namespace {
constexpr DeviceKernel kDeviceKernels[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {NAME##Function, NAME##Bind},
#include "runtime/kernels/kernels.def"
};
} // namespace

const DeviceKernel &deviceKernel(const Kernel &kernel) {
  return kDeviceKernels[&kernel - kernels().data()];
}

} // namespace cgc
