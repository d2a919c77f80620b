// dropout_*: dropout by the random numbers of uniform_f32, which are drawn in registers.
#include "runtime/kernels/random/dropout.h"

#include "runtime/base/philox.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct DropoutParameters {
  const int64_t *seed, *offset;
  const T *x;
  T *y;
  DropoutLaunch launch;
};

template <class T>
__global__ void __launch_bounds__(kUniformThreads)
    dropout(const __grid_constant__ DropoutParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const int64_t seed = *p.seed, offset = *p.offset;
  const UniformLaunch &numbers = p.launch.numbers;
  const uint64_t elements = numbers.elements, step = uint64_t(gridDim.x) * kUniformThreads * 4;
  for (uint64_t i = (uint64_t(blockIdx.x) * kUniformThreads + threadIdx.x) * 4; i < elements;
       i += step) {
    const PhiloxWords words = uniformWords(uint32_t(i / 4), numbers.stream, seed, offset);
    const bool vector = numbers.vectors && i + 4 <= elements;
    float x[4] = {};
    if (vector)
      loadFloats(p.x + i, x);
    else
      for (int k = 0; k < 4 && i + k < elements; ++k)
        x[k] = toFloat(p.x[i + k]);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      x[k] = uniformNumber(words.words[k]) < p.launch.p ? 0 : x[k] * p.launch.scale;
    if (vector)
      storeFloats(p.y + i, x);
    else
      for (int k = 0; k < 4 && i + k < elements; ++k)
        p.y[i + k] = fromFloat<T>(x[k]);
  }
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(DropoutParameters<T>{
      static_cast<const int64_t *>(at.reads[0]), static_cast<const int64_t *>(at.reads[1]),
      static_cast<const T *>(at.reads[2]), static_cast<T *>(at.writes[0]),
      *checkDropout(launch, kDTypeOf<T>)});
}

} // namespace

CGC_KERNEL_OF(dropout_f32, dropout<float>, bind<float>)
CGC_KERNEL_OF(dropout_f16, dropout<__half>, bind<__half>)
CGC_KERNEL_OF(dropout_bf16, dropout<__nv_bfloat16>, bind<__nv_bfloat16>)

} // namespace cgc
