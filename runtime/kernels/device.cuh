// Device helpers of all kernels: programmatic dependent launch, conversions, vectors, warp sums.
#pragma once

#include "runtime/base/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace cgc::device {

/// Waits until all earlier kernels have completed and their writes are visible
/// (griddepcontrol.wait). Before it, a kernel may neither read what another kernel writes nor write
/// what another kernel reads. Returns at once if the graph edge is not programmatic, and before
/// sm_90.
__device__ inline void griddepWait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Allows the next kernel to be scheduled once every CTA of this one has called it or exited
/// (griddepcontrol.launch_dependents). It publishes no writes: the next kernel waits for the
/// completion of this one.
__device__ inline void griddepLaunchDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// The address of `p` in the shared state space, for PTX instructions.
__device__ inline uint32_t sharedAddress(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline float toFloat(float v) {
  return v;
}
__device__ inline float toFloat(__half v) {
  return __half2float(v);
}
__device__ inline float toFloat(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
template <class T> __device__ T fromFloat(float v);
template <> __device__ inline float fromFloat<float>(float v) {
  return v;
}
template <> __device__ inline __half fromFloat<__half>(float v) {
  return __float2half_rn(v);
}
template <> __device__ inline __nv_bfloat16 fromFloat<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

/// 16 bytes of T, the widest load or store of a thread.
template <class T> struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T v[kSize];
};

template <class T> __device__ Vector<T> loadVector(const T *p) {
  return *reinterpret_cast<const Vector<T> *>(p);
}

/// `Width` consecutive elements, aligned to their total size.
template <class T, int Width> struct alignas(sizeof(T) * Width) Pack {
  T v[Width];
};
template <int Width, class T> __device__ void loadFloats(const T *from, float (&values)[Width]) {
  const auto pack = *reinterpret_cast<const Pack<T, Width> *>(from);
#pragma unroll
  for (int i = 0; i < Width; ++i)
    values[i] = toFloat(pack.v[i]);
}
template <int Width, class T> __device__ void storeFloats(T *to, const float (&values)[Width]) {
  Pack<T, Width> pack;
#pragma unroll
  for (int i = 0; i < Width; ++i)
    pack.v[i] = fromFloat<T>(values[i]);
  *reinterpret_cast<Pack<T, Width> *>(to) = pack;
}

/// Rounds two floats to T and packs them into one register, `a` in the lower half.
template <class T> __device__ uint32_t packPair(float a, float b);
template <> __device__ inline uint32_t packPair<__half>(float a, float b) {
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(b), "f"(a));
  return bits;
}
template <> __device__ inline uint32_t packPair<__nv_bfloat16>(float a, float b) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(b), "f"(a));
  return bits;
}

/// Two elements in one register, for SIMD instructions such as HFMA2.
template <class T> struct PairOf;
template <> struct PairOf<__half> {
  using Type = __half2;
};
template <> struct PairOf<__nv_bfloat16> {
  using Type = __nv_bfloat162;
};
template <class T> using Pair = typename PairOf<T>::Type;

/// A vector of four pairs, stored as one 16-byte word: __half2 has a copy constructor, for which
/// the compiler would load and store pairs one by one.
template <class T> struct Pairs {
  static constexpr int kSize = 4;
  uint4 bits;
  __device__ Pair<T> &operator[](int i) { return reinterpret_cast<Pair<T> *>(&bits)[i]; }
};
template <class T> __device__ Pairs<T> loadPairs(const T *p) {
  return {*reinterpret_cast<const uint4 *>(p)};
}
template <class T> __device__ void storePairs(T *p, const Pairs<T> &v) {
  *reinterpret_cast<uint4 *>(p) = v.bits;
}
__device__ inline float2 toFloats(__half2 v) {
  return __half22float2(v);
}
__device__ inline float2 toFloats(__nv_bfloat162 v) {
  return __bfloat1622float2(v);
}
template <class T> __device__ Pair<T> fromFloats(float a, float b) {
  const uint32_t bits = packPair<T>(a, b);
  return *reinterpret_cast<const Pair<T> *>(&bits);
}

/// Synchronizes `threads` threads of the CTA at named barrier `number`; __syncthreads uses 0.
__device__ inline void syncThreads(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/// The sum of `value` over the warp, in every lane.
__device__ inline float warpSum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

} // namespace cgc::device

namespace cgc {

/// The DType of a device element type. Undefined for types that no kernel has.
template <class T> struct DTypeOf;
template <> struct DTypeOf<float> : std::integral_constant<DType, DType::F32> {};
template <> struct DTypeOf<__half> : std::integral_constant<DType, DType::F16> {};
template <> struct DTypeOf<__nv_bfloat16> : std::integral_constant<DType, DType::BF16> {};
template <> struct DTypeOf<int64_t> : std::integral_constant<DType, DType::I64> {};
template <> struct DTypeOf<int32_t> : std::integral_constant<DType, DType::I32> {};
template <> struct DTypeOf<bool> : std::integral_constant<DType, DType::Bool> {};
template <class T> inline constexpr DType kDTypeOf = DTypeOf<T>::value;

} // namespace cgc
