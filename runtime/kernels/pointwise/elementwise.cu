// elementwise_*: one op on strided operands, with broadcasting. copy: strided copies and
// conversions.
#include "runtime/kernels/pointwise/elementwise.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/pointwise/strided.cuh"

namespace cgc {
namespace {

using namespace device;

/// What ops on elements of type T are computed in.
template <class T> using Computed = std::conditional_t<std::is_integral_v<T>, T, float>;

/// takesIntegers() for device code.
template <ElementwiseOp op> constexpr bool kTakesIntegers = takesIntegers(op);

/// Loads a unit of x or y; `step` is the operand's stride along the innermost dimension.
template <int Width, class T>
__device__ void load(const T *from, int64_t step, Computed<T> (&values)[Width]) {
  const auto unit = loadUnit<Width>(from, step);
#pragma unroll
  for (int i = 0; i < Width; ++i)
    if constexpr (std::is_integral_v<T>)
      values[i] = unit.v[i];
    else
      values[i] = toFloat(unit.v[i]);
}

template <int Width, class T> __device__ void store(T *to, const Computed<T> (&values)[Width]) {
  if constexpr (std::is_integral_v<T>) {
    Pack<T, Width> unit;
#pragma unroll
    for (int i = 0; i < Width; ++i)
      unit.v[i] = values[i];
    *reinterpret_cast<Pack<T, Width> *>(to) = unit;
  } else {
    storeFloats(to, values);
  }
}

/// The derivative of x Phi(x): Phi(x) + x phi(x).
__device__ float geluSlope(float x) {
  return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) +
         x * 0.39894228040143268f * expf(-0.5f * x * x);
}

/// op(a, b), accurate enough for a result of type T. Ops of one operand ignore b.
template <class T, ElementwiseOp op> __device__ Computed<T> compute(Computed<T> a, Computed<T> b) {
  using enum ElementwiseOp;
  if constexpr (std::is_integral_v<T> && op == Abs)
    return a < 0 ? -a : a;
  else if constexpr (std::is_integral_v<T> && op == Maximum)
    return a > b ? a : b;
  else if constexpr (std::is_integral_v<T> && op == Minimum)
    return a < b ? a : b;
  else if constexpr (op == Abs)
    return fabsf(a);
  else if constexpr (op == Neg)
    return -a;
  else if constexpr (op == Exp)
    return expf(a);
  else if constexpr (op == Sqrt)
    return sqrtf(a);
  else if constexpr (op == Rsqrt)
    return rsqrtf(a);
  else if constexpr (op == Sin)
    return sinf(a);
  else if constexpr (op == Cos)
    return cosf(a);
  else if constexpr (op == Erf)
    return erff(a);
  else if constexpr (op == Sigmoid)
    return timesSigmoid<T>(1.0f, a);
  else if constexpr (op == Tanh)
    return device::Tanh()(a);
  else if constexpr (op == Relu)
    return device::Relu()(a);
  else if constexpr (op == Gelu)
    return device::Gelu<T>()(a);
  else if constexpr (op == GeluTanh)
    return device::GeluTanh<T>()(a);
  else if constexpr (op == QuickGelu)
    return device::QuickGelu<T>()(a);
  else if constexpr (op == Silu)
    return device::Silu<T>()(a);
  else if constexpr (op == Add)
    return a + b;
  else if constexpr (op == Sub)
    return a - b;
  else if constexpr (op == ReverseSub)
    return b - a;
  else if constexpr (op == Mul)
    return a * b;
  else if constexpr (op == Div)
    return a / b;
  else if constexpr (op == ReverseDiv)
    return b / a;
  else if constexpr (op == Pow)
    return powf(a, b);
  else if constexpr (op == Maximum)
    return maxOrNan(a, b);
  else if constexpr (op == Minimum)
    return minOrNan(a, b);
  else if constexpr (op == Hardshrink)
    return a >= -b && a <= b ? 0 : a;
  else if constexpr (op == ReluBackward)
    return b <= 0 ? 0 : a; // A NaN passes the gradient, as in LibTorch.
  else if constexpr (op == GeluBackward)
    return a * geluSlope(b);
  else if constexpr (op == Reciprocal)
    return 1.0f / a;
  else if constexpr (op == Softplus)
    return a > 20 ? a : log1pf(expf(a));
  else if constexpr (op == Log)
    return logf(a);
  else
    static_assert(op != op, "a row of elementwise_ops.def has no function here");
}

/// y = op(x, z), in place of x.
template <class T, int Width>
__device__ void apply(ElementwiseOp op, Computed<T> (&x)[Width], const Computed<T> (&y)[Width]) {
  const auto each = [&](auto function) {
#pragma unroll
    for (int i = 0; i < Width; ++i)
      x[i] = function(x[i], y[i]);
  };
  switch (op) {
#define CGC_ELEMENTWISE_OP(NAME, OPERANDS)                                                         \
  case ElementwiseOp::NAME:                                                                        \
    if constexpr (!std::is_integral_v<T> || kTakesIntegers<ElementwiseOp::NAME>)                   \
      each([](Computed<T> a, Computed<T> b) { return compute<T, ElementwiseOp::NAME>(a, b); });    \
    return;
#include "runtime/kernels/pointwise/elementwise_ops.def"
  }
}

template <class T> struct ElementwiseParameters {
  T *out;
  const T *x, *y; ///< Without y, `number` is the second operand.
  Computed<T> number;
  ElementwiseOp op;
  StridedLayout layout;
};

template <class T, int Width> __device__ void computeUnits(const ElementwiseParameters<T> &p) {
  forUnits(p.layout, [&](const Offsets &offset) {
    Computed<T> x[Width], y[Width];
    load(p.x + offset.of[1], p.layout.strides[1][0], x);
    if (p.y)
      load(p.y + offset.of[2], p.layout.strides[2][0], y);
    else
#pragma unroll
      for (int i = 0; i < Width; ++i)
        y[i] = p.number;
    apply<T>(p.op, x, y);
    store(p.out + offset.of[0], x);
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise(const __grid_constant__ ElementwiseParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.layout.width > 1)
    computeUnits<T, Vector<T>::kSize>(p);
  else
    computeUnits<T, 1>(p);
}

struct CopyParameters {
  void *out;
  const void *x;
  DType to, from;
  StridedLayout layout;
};

template <class T> struct Type {
  using type = T;
};

/// Calls `f(Type<T>)` with the element type of `dtype`, if copy converts it (checkCopy).
template <class F> __device__ void withType(DType dtype, F f) {
  switch (dtype) {
  case DType::F32:
    return f(Type<float>());
  case DType::F16:
    return f(Type<__half>());
  case DType::BF16:
    return f(Type<__nv_bfloat16>());
  case DType::I64:
    return f(Type<int64_t>());
  case DType::I32:
    return f(Type<int32_t>());
  case DType::U8:
    return f(Type<uint8_t>());
  case DType::Bool:
    return f(Type<bool>());
  case DType::F64:
  case DType::I16:
  case DType::I8:
    return;
  }
}

template <class T> constexpr bool kIsHalf = sizeof(T) == 2;

template <class To, class From> __device__ To convert(From value) {
  if constexpr (kIsHalf<From>)
    return convert<To>(toFloat(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (kIsHalf<To>)
    return fromFloat<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, uint8_t>)
    return static_cast<To>(static_cast<int64_t>(value)); // Negative numbers wrap around.
  else
    return static_cast<To>(value);
}

/// Elements of a unit: 16 bytes of the wider type.
template <class To, class From>
constexpr int kCopyWidth = 16 / int(sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));

template <int Width, class To, class From, class F>
__device__ void copyUnits(const CopyParameters &p, F convert) {
  forUnits(p.layout, [&](const Offsets &offset) {
    const auto in =
        loadUnit<Width>(static_cast<const From *>(p.x) + offset.of[1], p.layout.strides[1][0]);
    Pack<To, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i)
      out.v[i] = convert(in.v[i]);
    *reinterpret_cast<Pack<To, Width> *>(static_cast<To *>(p.out) + offset.of[0]) = out;
  });
}

template <class To, class From, class F>
__device__ void copyAll(const CopyParameters &p, F convert) {
  if (p.layout.width > 1)
    copyUnits<kCopyWidth<To, From>, To, From>(p, convert);
  else
    copyUnits<1, To, From>(p, convert);
}

template <class Bits> __device__ void copyBits(const CopyParameters &p) {
  copyAll<Bits, Bits>(p, [](Bits bits) { return bits; });
}

__device__ int elementBytes(DType dtype) {
  switch (dtype) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    return 1;
  }
  return 1;
}

__global__ void __launch_bounds__(kElementwiseThreads)
    copyElements(const __grid_constant__ CopyParameters p) {
  griddepLaunchDependents();
  griddepWait();
  if (p.from == p.to) {
    switch (elementBytes(p.from)) {
    case 1:
      return copyBits<uint8_t>(p);
    case 2:
      return copyBits<uint16_t>(p);
    case 4:
      return copyBits<uint32_t>(p);
    default:
      return copyBits<uint64_t>(p);
    }
  }
  withType(p.from, [&](auto from) {
    withType(p.to, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      if constexpr (!std::is_same_v<From, To>)
        copyAll<To, From>(p, [](From value) { return convert<To>(value); });
    });
  });
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(ElementwiseParameters<T>{
      static_cast<T *>(at.writes[0]), static_cast<const T *>(at.reads[0]),
      static_cast<const T *>(at.reads[1]), static_cast<Computed<T>>(launch.floats[0]),
      static_cast<ElementwiseOp>(launch.ints[0]), *checkElementwise(launch, kDTypeOf<T>)});
}

Result<KernelParameters> bindCopy(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(CopyParameters{at.writes[0], at.reads[0], launch.writes[0].dtype,
                                         launch.reads[0].dtype, *checkCopy(launch)});
}

} // namespace

CGC_FLOAT_KERNELS(elementwise, elementwise, bind)
CGC_KERNEL_OF(elementwise_i64, elementwise<int64_t>, bind<int64_t>)
CGC_KERNEL_OF(copy, copyElements, bindCopy)

} // namespace cgc
