// where: selects elements of one operand or another by a tensor of bools, with broadcasting.
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
  releaseSuccessor();
  waitForPredecessor();
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

Result<KernelParameters> bind(const KernelArguments &a) {
  const TensorView &out = a.writes[0], &condition = a.reads[0];
  CGC_TRY(checkStridedLaunch(a));
  if (condition.data && condition.dtype != DType::Bool)
    return refuseArguments("the condition has to be of bool");
  WhereParameters p = {.out = out.data, .condition = static_cast<const bool *>(condition.data)};
  for (int k = 0; k < 2; ++k) {
    const TensorView &operand = a.reads[1 + k];
    if (operand.data && operand.dtype != out.dtype)
      return refuseArguments("the operands and the result have to be of one dtype");
    const std::optional<ElementBits> number = elementBits(out.dtype, a.floats[k]);
    if (!operand.data && !number)
      return refuseArguments("a number is none of the result's dtype");
    p.numbers[k] = number.value_or(0);
  }
  p.x = a.reads[1].data;
  p.z = a.reads[2].data;
  const int64_t bytes = dtypeSize(out.dtype);
  p.bytes = static_cast<int>(bytes);
  const TensorView *operands[] = {&out, &condition, &a.reads[1], &a.reads[2]};
  CGC_ASSIGN_OR_RETURN(p.layout, stridedLayout(operands, 16 / bytes));
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(where, whereHolds, bind)

} // namespace cgc
