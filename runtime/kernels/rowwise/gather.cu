// gather: picks an element for each index. scatter_add_*: its gradient, which each element of the
// result looks up itself, so that the order of the sums is fixed.
#include "runtime/kernels/rowwise/gather.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

struct GatherParameters {
  const void *x, *indices, *source; ///< No source for gather.
  void *y;
  GatherLaunch launch;
  int bytes; ///< Size of an element.
  bool isWide;
};

/// Calls `f(element, outer, middle, inner)` for this thread's elements of the result.
template <class F> __device__ void forElements(const GatherLaunch &launch, F f) {
  for (uint32_t element = blockIdx.x * kGatherThreads + threadIdx.x; element < launch.elements;
       element += gridDim.x * kGatherThreads) {
    const uint32_t outer = launch.span.quotient(element),
                   within = element - outer * launch.span.divisor,
                   middle = launch.inner.quotient(within);
    f(element, int64_t(outer), int64_t(middle), within - middle * launch.inner.divisor);
  }
}

template <class Bits> __device__ void gatherBits(const GatherParameters &p) {
  const GatherLaunch &l = p.launch;
  forElements(l, [&](uint32_t element, int64_t outer, int64_t, uint32_t inner) {
    const int64_t index = loadIndex(p.indices, p.isWide, element, l.n);
    static_cast<Bits *>(p.y)[element] =
        static_cast<const Bits *>(p.x)[(outer * l.n + index) * l.inner.divisor + inner];
  });
}

__global__ void __launch_bounds__(kGatherThreads)
    gatherElements(const __grid_constant__ GatherParameters p) {
  griddepLaunchDependents();
  griddepWait();
  switch (p.bytes) {
  case 1:
    return gatherBits<uint8_t>(p);
  case 2:
    return gatherBits<uint16_t>(p);
  case 4:
    return gatherBits<uint32_t>(p);
  default:
    return gatherBits<uint64_t>(p);
  }
}

template <class T>
__global__ void __launch_bounds__(kGatherThreads)
    scatterAdd(const __grid_constant__ GatherParameters p) {
  griddepLaunchDependents();
  griddepWait();
  const GatherLaunch &l = p.launch;
  forElements(l, [&](uint32_t element, int64_t outer, int64_t middle, uint32_t inner) {
    float sum = toFloat(static_cast<const T *>(p.x)[element]);
    for (int64_t j = 0; j < l.k; ++j) {
      const int64_t at = (outer * l.k + j) * l.inner.divisor + inner;
      if (loadIndex(p.indices, p.isWide, at, l.n) == middle)
        sum += toFloat(static_cast<const T *>(p.source)[at]);
    }
    static_cast<T *>(p.y)[element] = fromFloat<T>(sum);
  });
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(GatherParameters{
      at.reads[0], at.reads[1], nullptr, at.writes[0], *checkGather(launch),
      int(dtypeSize(launch.writes[0].dtype)), launch.reads[1].dtype == DType::I64});
}

template <class T>
Result<KernelParameters> bindScatterAdd(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(GatherParameters{at.reads[0], at.reads[1], at.reads[2], at.writes[0],
                                           *checkScatterAdd(launch, kDTypeOf<T>), int(sizeof(T)),
                                           launch.reads[1].dtype == DType::I64});
}

} // namespace

CGC_KERNEL_OF(gather, gatherElements, bind)
CGC_FLOAT_KERNELS(scatter_add, scatterAdd, bindScatterAdd)

} // namespace cgc
