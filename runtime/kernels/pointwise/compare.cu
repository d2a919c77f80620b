// compare_*: elementwise comparisons of strided operands, with broadcasting.
#include "runtime/kernels/pointwise/compare.h"

#include "runtime/kernels/device/element_bits.h"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/strided.cuh"

#include <type_traits>

namespace cgc {
namespace {

using namespace device;

template <class T> struct CompareParameters {
  bool *out;
  const T *x, *y; ///< Without y, `number` is the second operand.
  ElementBits number;
  CompareOp op;
  StridedLayout layout;
};

/// The value to compare: floats as f32, otherwise the element itself.
template <class T> __device__ auto comparable(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return toFloat(value);
}

template <int Width, class T>
__device__ Pack<bool, Width> compare(CompareOp op, const Pack<T, Width> &x,
                                     const Pack<T, Width> &y) {
  Pack<bool, Width> out;
  const auto each = [&](auto function) {
#pragma unroll
    for (int i = 0; i < Width; ++i)
      out.v[i] = function(comparable(x.v[i]), comparable(y.v[i]));
  };
  switch (op) {
  case CompareOp::Eq:
    each([](auto a, auto b) { return a == b; });
    break;
  case CompareOp::Ne:
    each([](auto a, auto b) { return a != b; });
    break;
  case CompareOp::Lt:
    each([](auto a, auto b) { return a < b; });
    break;
  case CompareOp::Le:
    each([](auto a, auto b) { return a <= b; });
    break;
  case CompareOp::Gt:
    each([](auto a, auto b) { return a > b; });
    break;
  case CompareOp::Ge:
    each([](auto a, auto b) { return a >= b; });
    break;
  }
  return out;
}

template <class T, int Width> __device__ void compareUnits(const CompareParameters<T> &p) {
  const T *y = p.y ? p.y : reinterpret_cast<const T *>(&p.number);
  forUnits(p.layout, [&](const Offsets &offset) {
    *reinterpret_cast<Pack<bool, Width> *>(p.out + offset.of[0]) =
        compare(p.op, loadUnit<Width>(p.x + offset.of[1], p.layout.strides[1][0]),
                loadUnit<Width>(y + offset.of[2], p.layout.strides[2][0]));
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    compareElements(const __grid_constant__ CompareParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.layout.width > 1)
    compareUnits<T, Vector<T>::kSize>(p);
  else
    compareUnits<T, 1>(p);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  constexpr DType dtype = kDTypeOf<T>;
  return KernelParameters(CompareParameters<T>{
      static_cast<bool *>(at.writes[0]), static_cast<const T *>(at.reads[0]),
      static_cast<const T *>(at.reads[1]), at.reads[1] ? 0 : elementBits(dtype, launch.floats[0]),
      static_cast<CompareOp>(launch.ints[0]), *checkCompare(launch, dtype)});
}

} // namespace

CGC_FLOAT_KERNELS(compare, compareElements, bind)
CGC_KERNEL_OF(compare_i64, compareElements<int64_t>, bind<int64_t>)
CGC_KERNEL_OF(compare_i32, compareElements<int32_t>, bind<int32_t>)
CGC_KERNEL_OF(compare_bool, compareElements<bool>, bind<bool>)

} // namespace cgc
