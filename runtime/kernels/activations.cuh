// The activation functions on the device. T is the type that the result is rounded to: f32 gets
// the accurate functions, f16 and bf16 fast ones whose error is far below their rounding.
#pragma once

#include "runtime/kernels/activation.h"

#include <cuda_fp16.h>

#include <type_traits>

namespace cgc::device {

/// The larger of two; NaN if either is NaN, where fmaxf drops it.
__device__ inline float maxOrNan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
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

template <class T = __half> struct Gelu {
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

template <class T = __half> struct GeluTanh {
  __device__ float operator()(float x) const {
    // 0.5 (1 + tanh(u)) is sigmoid(2u).
    constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
    return timesSigmoid<T>(x, kTwiceSqrt2OverPi * fmaf(0.044715f * x * x, x, x));
  }
};

template <class T = __half> struct QuickGelu {
  __device__ float operator()(float x) const { return timesSigmoid<T>(x, 1.702f * x); }
};

template <class T = __half> struct Silu {
  __device__ float operator()(float x) const { return timesSigmoid<T>(x, x); }
};

struct Relu {
  __device__ float operator()(float x) const { return maxOrNan(x, 0.0f); }
};

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

/// Calls `f(functor)` with the functor of `kind`: one switch around a loop, not in it.
template <class T = __half, class F>
__device__ decltype(auto) withActivation(Activation kind, F &&f) {
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

template <class T = __half> __device__ float activate(Activation kind, float x) {
  return withActivation<T>(kind, [x](auto function) { return function(x); });
}

} // namespace cgc::device
