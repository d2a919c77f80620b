// Gpu: finds a GPU and checks its capabilities.
#include "runtime/exec/gpu.h"

#include "runtime/exec/cuda_support.h"
#include "runtime/kernels/kernel_table.h"

namespace cgc {
namespace {

constexpr int kMinMajor = 8; ///< sm_80, the oldest architecture that kernels are compiled for.

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace

Result<Gpu> findGpu(int index, GpuNeed need) {
  const auto none = [&](const char *cause) {
    return Status(Code::Device, std::string(need.who) + ", and " + cause + "; " + need.otherwise);
  };
  int driver = 0, count = 0;
  CGC_TRY(CGC_CUDA(cudaDriverGetVersion(&driver), "cannot ask for the driver's version"));
  if (driver == 0)
    return none("there is no NVIDIA driver here");
  const cudaError_t error = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver)
    return Status(Code::Device, "the NVIDIA driver knows CUDA " + versionText(driver) +
                                    ", and cgc needs " + versionText(CUDART_VERSION) +
                                    "; update the driver");
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return none("the driver sees no GPU");
  CGC_TRY(cudaStatus(error, "cudaGetDeviceCount", "cannot list the GPUs"));
  if (index < 0 || index >= count)
    return Status(Code::Usage, "there is no GPU " + std::to_string(index) + "; this machine has " +
                                   std::to_string(count) + ", counted from 0");
  cudaDeviceProp properties;
  CGC_TRY(CGC_CUDA(cudaGetDeviceProperties(&properties, index),
                   "cannot look at GPU " + std::to_string(index)));
  return Gpu{index, properties.name, properties.major, properties.minor,
             properties.multiProcessorCount};
}

Status checkGpu(const Gpu &gpu, unsigned traits) {
  const std::string card = "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ", sm_" +
                           std::to_string(gpu.major) + std::to_string(gpu.minor) + ")";
  if (gpu.major < kMinMajor)
    return {Code::Device, card + " is older than sm_80, which cgc needs; " + GpuNeed().otherwise};
  // sm_90a code runs on no other architecture, newer ones included.
  if ((traits & kHopper) && !(gpu.major == 9 && gpu.minor == 0))
    return {Code::Device, card + " cannot run the plan, which has kernels for sm_90a (H100, H200) "
                                 "only; compile it with --arch sm_80"};
  return Status::ok();
}

} // namespace cgc
