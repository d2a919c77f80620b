// where: selects elements of one operand or another by a tensor of bools, with broadcasting.
#include "runtime/kernels/pointwise/where.h"

#include "runtime/kernels/device/element_bits.h"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/strided.cuh"

namespace cgc {
namespace {

using namespace device;

struct WhereParameters {
  void *out;
  const bool *condition; ///< Null: true everywhere.
  const void *x, *z;     ///< If one is null, its number is the operand.
  ElementBits numbers[2];
  int bytes; ///< Size of an element.
  StridedLayout layout;
};

__device__ const bool kHolds = true;

template <class Bits, int Width> __device__ void chooseUnits(const WhereParameters &p) {
  const bool *condition = p.condition ? p.condition : &kHolds;
  const Bits *x = static_cast<const Bits *>(p.x ? p.x : &p.numbers[0]),
             *z = static_cast<const Bits *>(p.z ? p.z : &p.numbers[1]);
  forUnits(p.layout, [&](const Offsets &offset) {
    const auto load = [&](const auto *from, int k) {
      return loadUnit<Width>(from + offset.of[k], p.layout.strides[k][0]);
    };
    const auto holds = load(condition, 1);
    auto out = load(x, 2);
    const auto other = load(z, 3);
#pragma unroll
    for (int i = 0; i < Width; ++i)
      out.v[i] = holds.v[i] ? out.v[i] : other.v[i];
    *reinterpret_cast<Pack<Bits, Width> *>(static_cast<Bits *>(p.out) + offset.of[0]) = out;
  });
}

template <class Bits> __device__ void choose(const WhereParameters &p) {
  if (p.layout.width > 1)
    chooseUnits<Bits, 16 / sizeof(Bits)>(p);
  else
    chooseUnits<Bits, 1>(p);
}

__global__ void __launch_bounds__(kElementwiseThreads)
    whereHolds(const __grid_constant__ WhereParameters p) {
  griddepLaunchDependents();
  griddepWait();
  switch (p.bytes) {
  case 1:
    return choose<uint8_t>(p);
  case 2:
    return choose<uint16_t>(p);
  case 4:
    return choose<uint32_t>(p);
  default:
    return choose<uint64_t>(p);
  }
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const DType dtype = launch.writes[0].dtype;
  WhereParameters p = {.out = at.writes[0],
                       .condition = static_cast<const bool *>(at.reads[0]),
                       .x = at.reads[1],
                       .z = at.reads[2],
                       .numbers = {},
                       .bytes = int(dtypeSize(dtype)),
                       .layout = *checkWhere(launch)};
  for (int k = 0; k < 2; ++k)
    if (!at.reads[1 + k])
      p.numbers[k] = elementBits(dtype, launch.floats[k]);
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(where, whereHolds, bind)

} // namespace cgc
