// uniform_f32: random numbers of Philox4x32-10, four from each counter.
#include "runtime/kernels/random/uniform.h"

#include "runtime/base/philox.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

struct UniformParameters {
  const int64_t *seed, *offset;
  float *y;
  UniformLaunch launch;
};

__global__ void __launch_bounds__(kUniformThreads)
    uniform(const __grid_constant__ UniformParameters p) {
  griddepLaunchDependents();
  griddepWait();
  const int64_t seed = *p.seed, offset = *p.offset;
  const uint64_t elements = p.launch.elements, step = uint64_t(gridDim.x) * kUniformThreads * 4;
  for (uint64_t i = (uint64_t(blockIdx.x) * kUniformThreads + threadIdx.x) * 4; i < elements;
       i += step) {
    const PhiloxWords words = uniformWords(uint32_t(i / 4), p.launch.stream, seed, offset);
    float numbers[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      numbers[k] = uniformNumber(words.words[k]);
    if (p.launch.vectors && i + 4 <= elements) {
      storeFloats(p.y + i, numbers);
      continue;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (i + k < elements)
        p.y[i + k] = numbers[k];
  }
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(UniformParameters{
      static_cast<const int64_t *>(at.reads[0]), static_cast<const int64_t *>(at.reads[1]),
      static_cast<float *>(at.writes[0]), *checkUniform(launch)});
}

} // namespace

CGC_KERNEL_OF(uniform_f32, uniform, bind)

} // namespace cgc
