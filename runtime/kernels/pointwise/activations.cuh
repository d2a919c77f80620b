// The activation functions on the device. T is the type that the caller rounds the result to. f32
// uses accurate functions. f16 and bf16 use fast ones, whose errors are far below their rounding,
// except GELU on pairs in GEMM epilogues, whose errors are as large as rounding.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/pointwise/activation.h"

#include <type_traits>

namespace cgc::device {

/// The maximum; NaN if either operand is NaN, unlike fmaxf.
__device__ inline float maxOrNan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
/// The minimum; NaN if either operand is NaN, unlike fminf.
__device__ inline float minOrNan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// 2^x, to 2 units in the last place.
__device__ inline float fastExp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// factor * sigmoid(x).
template <class T> __device__ float timesSigmoid(float factor, float x) {
  if constexpr (std::is_same_v<T, float>)
    return factor / (1.0f + expf(-x));
  else
    return __fdividef(factor, 1.0f + __expf(-x));
}

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

template <class T> struct Gelu {
  __device__ float operator()(float x) const {
    if constexpr (std::is_same_v<T, float>)
      return x * 0.5f * (1.0f + erff(x * 0.70710678118654752f));
    // max(x, 0) - t Phi(-t) with t = |x|. log2 Phi(-t) is a polynomial on [0, 5.6], fitted for this
    // file to the least maximal error: Phi(-t) is right to 3.2e-6 of itself. Beyond, t Phi(-t) is
    // below 6e-8.
    const float t = fminf(fabsf(x), 5.6f);
    float p = -1.809967231761764e-06f;
    p = fmaf(p, t, 6.117920882001695e-05f);
    p = fmaf(p, t, -0.0009277983073701786f);
    p = fmaf(p, t, 0.00849928630626109f);
    p = fmaf(p, t, -0.0539464958141019f);
    p = fmaf(p, t, -0.4584742610944657f);
    p = fmaf(p, t, -1.1512484624190436f);
    p = fmaf(p, t, -0.9999953993045472f);
    return fmaf(-t, fastExp2(p), maxOrNan(x, 0.0f));
  }
};

template <class T> struct GeluTanh {
  __device__ float operator()(float x) const {
    // 0.5 (1 + tanh(u)) is sigmoid(2u).
    constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
    return timesSigmoid<T>(x, kTwiceSqrt2OverPi * fmaf(0.044715f * x * x, x, x));
  }
};

template <class T> struct QuickGelu {
  __device__ float operator()(float x) const { return timesSigmoid<T>(x, 1.702f * x); }
};

template <class T> struct Silu {
  __device__ float operator()(float x) const { return timesSigmoid<T>(x, x); }
};

struct Relu {
  __device__ float operator()(float x) const { return maxOrNan(x, 0.0f); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

/// Calls `f(functor)` with the functor of `kind`, so that the switch is outside of loops.
template <class T, class F> __device__ decltype(auto) withActivation(Activation kind, F &&f) {
  switch (kind) {
  case Activation::Gelu:
    return f(Gelu<T>());
  case Activation::GeluTanh:
    return f(GeluTanh<T>());
  case Activation::QuickGelu:
    return f(QuickGelu<T>());
  case Activation::Silu:
    return f(Silu<T>());
  case Activation::Relu:
    return f(Relu());
  case Activation::Tanh:
    return f(Tanh());
  case Activation::None:
    break;
  }
  return f(Identity());
}

/// The activation of both elements of a pair of T, rounded to T.
template <class T, class F> __device__ Pair<T> activatePair(F activation, Pair<T> x) {
  if constexpr (std::is_same_v<F, Identity>)
    return x;
  const float2 values = toFloats(x);
  return fromFloats<T>(activation(values.x), activation(values.y));
}

/// |x| Phi(-|x|) as a product of two factors. GELU(x) is max(x, 0) minus it.
struct GeluRest {
  __half2 size, weight; ///< min(|x|, 3.796875), and an approximation of Phi(-size).
};
/// The weight is the square of a polynomial in `size`, fitted for this file to the least error of
/// f16 results, with coefficients of 11 bits. A polynomial for log2(weight) would need a slow 2^x.
__device__ inline GeluRest geluRest(__half2 x) {
  const auto both = [](float v) { return __float2half2_rn(v); };
  const __half2 size = __hmin2(__habs2(x), both(3.796875f));
  __half2 p = both(-0.006298065185546875f);
  p = __hfma2(p, size, both(0.05029296875f));
  p = __hfma2(p, size, both(-0.07659912109375f));
  p = __hfma2(p, size, both(-0.275634765625f));
  p = __hfma2(p, size, both(0.70654296875f));
  return {size, __hmul2(p, p)};
}
/// GELU of a pair. bench/gelu.py computes its error relative to the rounding error of the exact
/// result, both as root mean squares, for x with a normal distribution of deviation 0.1, 0.5, 1 and
/// 2. f16: 2.66, 1.61, 1.26 and 1.17 over all x; 3.02, 2.98, 4.01 and 6.61 for x < 0, where results
/// are small, with an error of at most 4.6e-4. bf16: at most 1.05; 1.30 for x < 0, with an error of
/// at most 6.1e-4. Near 0 the relative error before rounding is 0.15 %. Below 1e-4 bf16 results
/// lose relative precision.
template <> __device__ inline __half2 activatePair<__half>(Gelu<__half>, __half2 x) {
  const GeluRest rest = geluRest(x);
  return __hfma2(__hneg2(rest.size), rest.weight, __hmax2_nan(x, __float2half2_rn(0)));
}
template <>
__device__ inline __nv_bfloat162 activatePair<__nv_bfloat16>(Gelu<__nv_bfloat16>,
                                                             __nv_bfloat162 x) {
  const float2 values = toFloats(x);
  const GeluRest rest = geluRest(__floats2half2_rn(values.x, values.y));
  const float2 less = toFloats(__hmul2(rest.size, rest.weight));
  return fromFloats<__nv_bfloat16>(maxOrNan(values.x, 0) - less.x, maxOrNan(values.y, 0) - less.y);
}

} // namespace cgc::device
